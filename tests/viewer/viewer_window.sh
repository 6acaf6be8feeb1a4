#!/usr/bin/env bash
# SPDX-License-Identifier: Zlib
# Runs the viewer in a window on a virtual X server (Xvfb). Each documented key and mouse action is sent
# between two frames, while the viewer is stopped (SIGSTOP). A picture of the screen must show the
# action's effect. The test waits for conditions, not for fixed times. A condition that does not hold after
# LIMIT seconds is a failure.
# Usage: viewer_window.sh VIEWER WINDOW_PICTURE; exits with 77 (skipped) if a tool is missing.
set -u
viewer=$1 look=$2
LIMIT=${LIMIT:-60}
for tool in Xvfb xdotool; do
  command -v $tool >/dev/null || { echo "skipped: no $tool"; exit 77; }
done
scratch=$(mktemp -d)
process='' server=''
cleanup() {
  if [ -n "$process" ]; then kill -KILL "$process"; fi 2>/dev/null
  if [ -n "$server" ]; then kill "$server"; wait "$server"; fi 2>/dev/null
  rm -rf "$scratch"
}
trap cleanup EXIT
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }

# until_true WHAT COMMAND...: waits until COMMAND succeeds, and reports WHAT.
until_true() {
  local what=$1 end=$((SECONDS + LIMIT))
  shift
  until "$@"; do
    if [ $SECONDS -ge $end ]; then fail "$what"; return 1; fi
    sleep 0.1
  done
  echo "ok: $what"
}

# Mesa's GLX leaks memory. LeakSanitizer cannot suppress these leaks by the library's name, because the
# library is already unloaded when LeakSanitizer runs.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0

# --- The screen, and the regions of a window of 900 x 620 pixels.
mkdir "$scratch/screen"
Xvfb -displayfd 3 -screen 0 900x620x24 -nocursor -fbdir "$scratch/screen" -nolisten tcp \
  3>"$scratch/display" 2>"$scratch/xvfb.log" &
server=$!
has_display() { [ -s "$scratch/display" ]; }
until_true "the X server starts" has_display || { cat "$scratch/xvfb.log"; exit 1; }
DISPLAY=:$(cat "$scratch/display")
export DISPLAY
scene=(292 0 900 424) panel=(0 0 292 620) list=(638 0 900 424) broadphase=(0 120 292 240)
park=(330 400)  # a position at which nothing reacts to the mouse

# see REGION... [COLOUR]: prints the output of window_picture for the current screen.
see() { cp "$scratch/screen/Xvfb_screen0" "$scratch/now" && "$look" "$scratch/now" "$@"; }
# rest REGION... [COLOUR]: prints the output of `see` once it no longer changes.
rest() {
  local last='' now='' tries
  for tries in {1..100}; do
    now=$(see "$@")
    if [ "$now" = "$last" ]; then break; fi
    last=$now
    sleep 0.2
  done
  echo "$now"
}
is() { [ "$(see "${@:2}")" = "$1" ]; }       # is HASH REGION...
is_not() { [ "$(see "${@:2}")" != "$1" ]; }
count() { local all; all=$(see "${scene[@]}" "$1"); echo "${all%% *}"; }  # count COLOUR
has_more() { [ "$(count "$1")" -gt $(($2 + 40)) ]; }                      # has_more COLOUR THAN
is_still() { local before; before=$(see 0 0 900 620); sleep 1; is "$before" 0 0 900 620; }
moves() { ! is_still; }

# tap XDOTOOL_COMMANDS...: runs the commands between two frames, and then moves the mouse to `park`.
tap() {
  kill -STOP "$process"
  xdotool "$@" mousemove "${park[@]}"
  kill -CONT "$process"
}

# The bodies start in the air, so pairs are added and removed later.
"$viewer" --scene planes --objects 100 --size 900,620 --threads 1 2>"$scratch/viewer.log" &
process=$!
until_true "the window shows the bodies" has_more active 0 || { cat "$scratch/viewer.log"; exit 1; }

# --- P and N.
until_true "the scene moves" moves
tap key p
until_true "P pauses" is_still
before=$(rest "${panel[@]}")
tap key n
until_true "N makes a step" is_not "$before" "${panel[@]}"
until_true "N makes only one step" is_still
tap key p
until_true "P goes on" moves
tap key n
until_true "N pauses" is_still
before=$(rest "${panel[@]}")
# Steps until bodies touch. The picture is then the same in every run.
tap key r $(printf 'n %.0s' {1..60})
until_true "R and 60 times N change the panel" is_not "$before" "${panel[@]}"

# --- The mouse, and F, which resets the camera.
before=$(rest "${scene[@]}")
tap mousemove 600 100 click 4 click 4 click 4
until_true "the wheel changes the picture" is_not "$before" "${scene[@]}"
before=$(rest "${scene[@]}")
tap key f
until_true "F changes the picture" is_not "$before" "${scene[@]}"
home=$(rest "${scene[@]}")
bodies=$(count active)
read -r _ x y < <(see "${scene[@]}" active)
back_home() {
  tap key f
  until_true "F shows the whole scene again" is "$home" "${scene[@]}"
}
tap mousemove 600 100 click 4 click 4 click 4
until_true "the wheel zooms in" has_more active "$bodies"
back_home
tap mousemove 600 100 click 5 click 5 click 5
smaller() { [ "$(count active)" -lt $((bodies * 3 / 4)) ]; }
until_true "the wheel zooms out" smaller
back_home
tap mousemove 500 100 mousedown 1 mousemove 600 100 mouseup 1
until_true "a left drag orbits" is_not "$home" "${scene[@]}"
about_there() { local at; read -r _ at _ < <(see "${scene[@]}" active); [ $((at - x)) -lt 60 ]; }
until_true "the left drag orbits around the scene's middle" about_there
back_home
tap mousemove 500 100 mousedown 3 mousemove 600 100 mouseup 3
further_right() { local at; read -r _ at _ < <(see "${scene[@]}" active); [ $((at - x)) -gt 70 ]; }
until_true "a right drag moves the view" further_right
back_home
tap mousemove 285 200 mousedown 1 mousemove 150 300 mouseup 1 click 4 mousemove 600 600 click 4 key 1
until_true "key 1 shows an overlay" is_not "$home" "${scene[@]}"
tap key 1
until_true "drag and wheel over the panel and the graphs do not change the scene" is "$home" "${scene[@]}"

# --- Overlays. Each key is pressed once to show its overlay, and once to hide it.
overlay() {
  local key=$1 colour=$2 before
  before=$(count "$colour")
  tap key "$key"
  until_true "$key shows an overlay" has_more "$colour" "$before"
}
hide() {
  tap key "$1"
  until_true "$1 hides the overlay" is "$home" "${scene[@]}"
}
overlay 1 box
hide 1
tap key bracketleft  # a level with nodes that are large enough to be seen
overlay 2 tree
level=$(rest "${scene[@]}")
tap key bracketleft
until_true "[ shows another level" is_not "$level" "${scene[@]}"
tap key bracketright
until_true "] shows the first one" is "$level" "${scene[@]}"
hide 2
overlay 3 near
hide 3
overlay 4 added
hide 4
overlay 5 oversized
hide 5
tap key 1 1
tap key 2
until_true "two taps between two frames count as two" has_more tree 0
hide 2

# --- B and H.
ours=$(rest "${broadphase[@]}")
tap key b
until_true "B selects the next broad phase" is_not "$ours" "${broadphase[@]}"
tap key b b b
until_true "B selects the first broad phase after the last one" is "$ours" "${broadphase[@]}"
all=$(rest 0 0 900 620)
tap key h
until_true "H hides the panel" is_not "$ours" "${broadphase[@]}"
tap key h
until_true "H shows the panel again" is "$all" 0 0 900 620

# --- A click with the control key turns the slider of threads into a text field, which then receives the keys.
xdotool keydown ctrl mousemove 97 226
until_true "the slider lights up" is_not "$all" 0 0 900 620
lit=$(rest "${panel[@]}")
xdotool click 1
until_true "control and a click open a text field" is_not "$lit" "${panel[@]}"
xdotool keyup ctrl
tap key 1
xdotool keydown Escape  # held, because ImGui polls its state
until_true "keys in the text field do nothing else" is "$all" 0 0 900 620
xdotool keyup Escape

# --- A click, space and R.
at_mouse=(310 40 350 80) elsewhere=(800 380 890 420)
left=$(rest "${at_mouse[@]}")
before=$(rest "${list[@]}")
tap mousemove "$x" "$y" click 1
until_true "a left click picks" has_more picked 0
until_true "a left click lists pairs" is_not "$before" "${list[@]}"
left_dimmed=$(rest "${at_mouse[@]}") right_dimmed=$(rest "${elsewhere[@]}")
tap mousemove 330 60 key space
until_true "space shoots a box at the mouse" is_not "$left_dimmed" "${at_mouse[@]}"
until_true "space changes nothing elsewhere" is "$right_dimmed" "${elsewhere[@]}"
tap key r
until_true "R removes the box and the selection" is "$left" "${at_mouse[@]}"
until_true "R leaves the scene paused" is_still
start=$(rest 0 0 900 620)
tap key n n n
until_true "N makes three steps" is_not "$start" 0 0 900 620
tap key r
until_true "R restarts the scene" is "$start" 0 0 900 620

# --- Escape.
tap key Escape
ended() { ! kill -0 "$process" 2>/dev/null; }
until_true "escape quits" ended
if ended; then
  wait "$process" || fail "the viewer ended with status $?"
  process=''
fi
echo "$failures failed"
[ $failures -eq 0 ]
