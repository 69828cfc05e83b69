# The lab of this machine: testbeds.hcl(5) describes every block, and
# /usr/share/doc/kernsweep/examples has a whole one.
#
# A target is looked at and added by
#   kernsweep -f /etc/kernsweep/testbeds.hcl target add ssh://root@10.0.0.7 --write
