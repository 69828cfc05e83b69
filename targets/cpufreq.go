package targets

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// cpuFreq sums up the probe's section cpufreq: for each file's name the value
// that all CPUs have, or every value with the number of CPUs that have it.
func cpuFreq(section []byte) map[string]string {
	count := map[string]map[string]int{}
	for file, value := range pairs(section) {
		name := path.Base(file)
		if strings.HasPrefix(file, "/sys/devices/system/cpu/smt/") {
			name = "smt"
		}
		if value == "" || strings.HasPrefix(value, "<") { // "<unsupported>"
			continue
		}
		if count[name] == nil {
			count[name] = map[string]int{}
		}
		count[name][value]++
	}
	var all map[string]string
	for name, values := range count {
		var words []string
		for v, n := range values {
			if len(values) > 1 {
				v = fmt.Sprintf("%s (%d CPUs)", v, n)
			}
			words = append(words, v)
		}
		slices.Sort(words)
		if all == nil {
			all = map[string]string{}
		}
		all[strings.TrimPrefix(name, "scaling_")] = strings.Join(words, ", ")
	}
	return all
}
