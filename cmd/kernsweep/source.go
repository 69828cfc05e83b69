package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"kernsweep/orchestrator/config"
)

// sourceCopy is the configuration as one file, for the run directory. Secrets
// cannot be in it: the language has no place for literal ones.
func sourceCopy(lab *config.Lab) []byte {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(lab.Sources)) {
		if len(lab.Sources) > 1 {
			fmt.Fprintf(&b, "# %s\n", name)
		}
		b.Write(lab.Sources[name])
	}
	return b.Bytes()
}
