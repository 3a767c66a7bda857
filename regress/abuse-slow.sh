tid="who takes its time is closed in time, beside 200 honest agents"
# BC-25, BC-34.
trees=one
# It measures how the honest fare.
alone=yes
. "$SRC/regress/abuse/abuse.inc"

abuse_hub 240
abuse_run slow
