"""What a checker must report: each line that ends in a code is an error of that code, and no other line is one."""

import sparseloom as sl

t = sl.eye(3)
i, j = sl.indices("i j")
sl.progam("y(i) = x(i)")  # attr-defined
sl.sine(t)  # attr-defined
t.summ()  # attr-defined
t.reshapee(9)  # attr-defined
t.squeeze(axes=0)  # call-arg
sl.sin(t, t)  # call-overload
sl.sum(t, axes=0)  # call-overload
sl.program("y(i) = x(i)", shedule="")  # call-arg
sl.set_threads("two")  # arg-type
t.schedule().splitt(i, j, j, 4)  # attr-defined


def after_a_method(tensor: sl.Tensor) -> int:
    print(tensor.std())
    return "no int"  # return-value


def after_a_shape(tensor: sl.Tensor) -> int:
    flat = tensor.reshape(9)
    return flat  # return-value
