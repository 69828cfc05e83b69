package results

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// longestName bounds one path element's part, in bytes: two of them and what is
// added stay below the 255 that file systems take.
const longestName = 100

// safeName makes one path element of a name, another one for every name. Names
// are identifiers, so this changes nothing; anything else is written as %XX, so
// that no name can leave its directory or hide. One that gets too long is cut
// and marked by "~", which nothing else yields, and its hash. dots says whether
// dots inside are kept. (Where a file system takes A for a, two such lanes share
// a folder: their boots are numbered on, and nothing is overwritten.)
func safeName(name string, dots bool) string {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		c := name[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-' && i > 0, c == '.' && dots && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	if b.Len() == 0 {
		return "%"
	}
	if s := b.String(); len(s) <= longestName {
		return s
	}
	sum := sha256.Sum256([]byte(name))
	return fmt.Sprintf("%s~%x", b.String()[:longestName-33], sum[:16])
}

// LaneDir is the directory of a lane's boots and trials.
func (r *Run) LaneDir(lane string) string { return filepath.Join(r.dir, safeName(lane, false)) }

// BootDir is the directory of a boot: boot.json, console.log, dmesg.txt, probe/.
func (r *Run) BootDir(lane string, number int) string {
	return filepath.Join(r.LaneDir(lane), fmt.Sprintf("boot-%03d", number))
}

// TrialDir is the directory of one attempt: stdout, stderr, spool, vmstat.csv, trial.json.
func (r *Run) TrialDir(s Slot, attempt int) string {
	return filepath.Join(r.slotDir(s), "attempt-"+strconv.Itoa(attempt))
}

func (r *Run) slotDir(s Slot) string {
	repeat := fmt.Sprintf("%02d", s.Repeat)
	if s.Warmup() {
		repeat = "warmup-" + fmt.Sprintf("%02d", 1-s.Repeat)
	}
	name := safeName(s.Workload, true) + "." + safeName(s.Scenario, false) + "." + repeat
	return filepath.Join(r.BootDir(s.Target, s.Boot), name)
}

// NewBootDir makes the directory of a boot; one that exists is an error, since
// boots are never reused.
func (r *Run) NewBootDir(lane string, number int) (string, error) {
	dir := r.BootDir(lane, number)
	if err := newDir(dir); err != nil {
		return "", fmt.Errorf("target %s: boot %d: %w", lane, number, err)
	}
	return dir, nil
}

// NewTrialDir makes the directory of an attempt; one that exists is an error,
// since attempts are never overwritten.
func (r *Run) NewTrialDir(s Slot, attempt int) (string, error) {
	dir := r.TrialDir(s, attempt)
	if err := newDir(dir); err != nil {
		return "", fmt.Errorf("trial %s: attempt %d: %w", s.Cell, attempt, err)
	}
	return dir, nil
}

// NextBoot is the number of a lane's next boot: above every one in the journal
// and on disk, so that a journal that lost records reuses nothing.
func (r *Run) NextBoot(lane string, m *Model) int {
	last := highest(r.LaneDir(lane), "boot-")
	for _, b := range m.Boots {
		if b.Lane == lane {
			last = max(last, b.Number)
		}
	}
	return last + 1
}

// NextAttempt is the number of a slot's next attempt, by the journal and the disk.
func (r *Run) NextAttempt(s Slot, m *Model) int {
	last := highest(r.slotDir(s), "attempt-")
	if t := m.Slot(s); t != nil {
		for _, a := range t.Attempts {
			last = max(last, a.Number)
		}
	}
	return last + 1
}

func highest(dir, prefix string) int {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0 // not there yet
	}
	last := 0
	for _, e := range entries {
		if rest, ok := strings.CutPrefix(e.Name(), prefix); ok {
			if n, err := strconv.Atoi(rest); err == nil {
				last = max(last, n)
			}
		}
	}
	return last
}
