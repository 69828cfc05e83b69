package web

import (
	"io"
	"os"
	"path/filepath"
	"strings"

	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/results"
)

const (
	bootsShown = 30 // of a lane
	tailBoots  = 3  // the newest, whose consoles are read
	tailLines  = 20
	tailBytes  = 16 << 10
)

// laneBoots are the boots of a lane that is named as its view names it, the newest
// first.
func laneBoots(run *results.Run, lane string) ([]BootSummary, error) {
	state, err := run.State()
	if err != nil {
		return nil, err
	}
	out := []BootSummary{}
	for i := len(state.Model.Boots) - 1; i >= 0; i-- {
		b := state.Model.Boots[i]
		if live.Safe(b.Lane) != lane {
			continue
		}
		folder, err := filepath.Rel(run.Dir(), run.BootDir(b.Lane, b.Number))
		if err != nil {
			return nil, err
		}
		s := BootSummary{Number: b.Number, Asked: b.Asked, Outcome: string(b.Phase), Folder: filepath.ToSlash(folder)}
		if x := b.Result; x != nil {
			s.Kernel, s.Outcome, s.Stage, s.Reason = x.Kernel, string(x.Outcome), x.Stage, x.Reason
			s.Release, s.Proven, s.LastLines = x.Record.Release, x.Record.Proven, x.LastLines
		}
		out = append(out, s)
	}
	return out, nil
}

// withTails reads the last lines of the newest boots' consoles, where the journal
// has none: it has those of failed boots.
func withTails(run *results.Run, boots []BootSummary) {
	root, err := os.OpenRoot(run.Dir())
	if err != nil {
		return
	}
	defer root.Close()
	for i := range boots {
		b := &boots[i]
		if i < tailBoots && len(b.LastLines) == 0 {
			b.LastLines = tail(root, b.Folder+"/console.log")
		}
		for j := range b.LastLines {
			b.LastLines[j] = plainText(b.LastLines[j])
		}
	}
}

// tail are the last lines of a file, none when it cannot be read.
func tail(root *os.Root, name string) []string {
	f, info, err := openFile(root, name)
	if err != nil {
		return nil
	}
	defer f.Close()
	from := max(0, info.Size()-tailBytes)
	b, err := io.ReadAll(io.NewSectionReader(f, from, tailBytes))
	if err != nil {
		return nil
	}
	lines := strings.Split(strings.TrimRight(string(b), "\r\n"), "\n")
	if from > 0 {
		lines = lines[1:] // not whole
	}
	if len(lines) == 1 && lines[0] == "" {
		return nil
	}
	return lines[max(0, len(lines)-tailLines):]
}
