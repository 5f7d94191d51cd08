# Makes bloomery@.service from bloomery.service, for several servers on one machine:
# instance X has the configuration /etc/bloomery/X.conf and the data
# /var/lib/bloomery-X.
s,^Description=.*,& %i,
s,/etc/bloomery/bloomery\.conf$,/etc/bloomery/%i.conf --dir /var/lib/bloomery-%i,
s,^\(State\|Runtime\)Directory=bloomery$,&-%i,
s,^WorkingDirectory=/var/lib/bloomery$,&-%i,
