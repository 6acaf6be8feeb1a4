// Lets a long run ask between two steps whether Ctrl-C or SIGTERM has come, so that it can finish
// its files first. Does not end the run itself.
#pragma once

/// From now on the first SIGINT or SIGTERM only changes what interruption() says. The second one
/// ends the process, as it would have without this call.
void catchInterruptions();

/// The signal that came; 0: none.
int interruption();
