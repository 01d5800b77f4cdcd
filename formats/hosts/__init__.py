"""Machines: host files, host lists, racks and switches; a better order of machines.

>>> hosts = read_hosts("SwitchName=s0 Nodes=n[0-1]\\nSwitchName=s1 Nodes=n[2-3]")
>>> hosts.names, hosts.racks
(('n0', 'n1', 'n2', 'n3'), {'n0': 's0', 'n1': 's0', 'n2': 's1', 'n3': 's1'})
"""

from diagnosis.machines.order import best_order

from .reading import read_hosts
