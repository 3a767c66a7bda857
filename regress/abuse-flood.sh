tid="storms of connections, guesses and output, beside 200 honest agents"
trees=one
# It measures how the honest fare.
alone=yes
. "$SRC/regress/abuse/abuse.inc"

abuse_hub 210 "LogLimit 8M"
abuse_run flood
