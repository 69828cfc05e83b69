// Package console holds the console drivers, one file each. A driver is a
// struct that config decodes from a `console "NAME"` block.
package console

import "kernsweep/targets"

// All names every console driver. A new one is one file and one line here.
func All() map[string]func() targets.Console {
	return map[string]func() targets.Console{
		"command":    func() targets.Console { return new(Command) },
		"netconsole": func() targets.Console { return new(Netconsole) },
		"serial":     func() targets.Console { return new(Serial) },
		"ssh":        func() targets.Console { return new(SSH) },
		"tcp":        func() targets.Console { return new(TCP) },
		"telnet":     func() targets.Console { return new(Telnet) },
	}
}
