"""Pictures of a schedule, as text and as SVG: where its variables come from, the path of every operand, the order of visits."""
