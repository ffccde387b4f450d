"""The C that a kernel with threads begins with: how many threads it has is asked first.

OpenMP ends the process when a thread cannot be started. The runtime knows how many can be, and is asked once per call.
"""

TEAM_NAMES = ("ready_team", "use_team")  # what the helper declares beside itself
TEAM_HELPER = """
static void (*ready_team)(void);

void use_team(void (*given)(void)) {
  ready_team = given;
}

static void prepare_team(void) {
  if (ready_team) ready_team();
}
"""
