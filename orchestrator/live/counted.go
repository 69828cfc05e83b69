package live

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kernsweep/orchestrator/results"
)

// Going stands among outcomes for trials whose end is still to come.
const Going results.Outcome = "running"

// Outcomes are all of them, in the order in which people should see them.
func Outcomes() []results.Outcome {
	return []results.Outcome{results.OK, results.Failed, results.BootFailed, results.Lost, results.Invalid, results.Interrupted, Going,
		results.Skipped, results.SkippedByHand, results.NotApplicable}
}

// Counted are outcomes in a sentence: 35 ok, 2 failed. It is inert; "" for none.
func Counted(n map[results.Outcome]int) string {
	var s []string
	known := Outcomes()
	for _, o := range known {
		if n[o] > 0 {
			s = append(s, fmt.Sprintf("%d %s", n[o], o))
		}
	}
	for _, o := range slices.Sorted(maps.Keys(n)) { // of a later version
		if !slices.Contains(known, o) {
			s = append(s, fmt.Sprintf("%d %s", n[o], Safe(string(o))))
		}
	}
	return strings.Join(s, ", ")
}

// Stand is how trials stand: Counted, with those that nobody tried yet.
func Stand(n map[results.Outcome]int, missing int) string {
	s := Counted(n)
	switch {
	case missing > 0 && s != "":
		return fmt.Sprintf("%s, %d not tried", s, missing)
	case missing > 0:
		return fmt.Sprintf("%d not tried", missing)
	case s == "":
		return "nothing yet"
	}
	return s
}
