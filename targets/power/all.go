// Package power holds the power drivers, one file each. A driver is a struct
// that config decodes from a `power "NAME"` block.
package power

import "kernsweep/targets"

// All names every power driver. A new one is one file and one line here.
func All() map[string]func() targets.Power {
	return map[string]func() targets.Power{
		"command":   func() targets.Power { return new(Command) },
		"http":      func() targets.Power { return new(HTTP) },
		"ipmi":      func() targets.Power { return new(IPMI) },
		"pdudaemon": func() targets.Power { return new(PDUDaemon) },
		"redfish":   func() targets.Power { return new(Redfish) },
		"relay":     func() targets.Power { return new(Relay) },
		"shelly":    func() targets.Power { return new(Shelly) },
		"snmp":      func() targets.Power { return new(SNMP) },
		"tasmota":   func() targets.Power { return new(Tasmota) },
		"wol":       func() targets.Power { return new(WOL) },
	}
}
