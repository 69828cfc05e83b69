package agentbin

import "slices"

// Embedded lists the architectures whose agents are built in.
func Embedded() []string {
	var out []string
	for _, a := range Arches() {
		if _, err := embedded.Open("bin/agent-" + a + ".gz"); err == nil {
			out = append(out, a)
		}
	}
	slices.Sort(out)
	return out
}
