tid="frames and requests as they must not be, beside 200 honest agents"
# BC-26, BC-28, BC-29.
trees=one
# It measures how the honest fare.
alone=yes
. "$SRC/regress/abuse/abuse.inc"

abuse_hub 250
abuse_run frames
