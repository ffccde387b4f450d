// Code that a kernel with threads begins and ends with: how many threads it has is asked first, and said to be over in the end.
//
// OpenMP ends the process when a thread cannot be started. The runtime knows how many can be, and is asked once per call.

/// prepare_team
static void (*ready_team)(void), (*end_team)(void);

void use_team(void (*ready)(void), void (*end)(void)) {
  ready_team = ready;
  end_team = end;
}

static void prepare_team(void) {
  if (ready_team) ready_team();
}

static int32_t dismiss_team(int32_t status) {
  if (end_team) end_team();
  return status;
}
