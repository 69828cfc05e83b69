package compare

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"kernsweep/orchestrator/results"
	"kernsweep/targets"
)

// FloorsFolder is where the noise floors of devices are kept, below the folder of
// the run directories: a file for each target.
const FloorsFolder = "noise"

// floorFile is FloorsFolder/TARGET.json.
type floorFile struct {
	Target string      `json:"target"`
	Floors []keptFloor `json:"floors"`
}

type keptFloor struct {
	Workload string `json:"workload"`
	Scenario string `json:"scenario"`
	Metric   string `json:"metric"`
	Floor
}

func (k *keptFloor) key(target string) FloorKey {
	return FloorKey{target, k.Workload, k.Scenario, k.Metric}
}

// ReadFloors reads what A/A runs left beside the run directories. A file that
// cannot be read is in the error, and the floors of the others are given all the
// same; without the folder there are none.
func ReadFloors(runsDir string) (Floors, error) {
	out := Floors{}
	entries, err := os.ReadDir(filepath.Join(runsDir, FloorsFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return out, fmt.Errorf("noise floors: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		f, err := readFloorFile(filepath.Join(runsDir, FloorsFolder, e.Name()))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, k := range f.Floors {
			if k.HalfWidth > 0 && !math.IsInf(k.HalfWidth, 0) {
				out[k.key(f.Target)] = k.Floor
			}
		}
	}
	return out, errors.Join(errs...)
}

// elsewhere says how the machine of a floor differs from one; "": as far as is
// known it is the same.
func (f *Floor) elsewhere(m *targets.Identity) string {
	if f.Machine == nil || m == nil {
		return ""
	}
	return f.Machine.Differs(m)
}

func readFloorFile(path string) (floorFile, error) {
	var f floorFile
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &f)
	}
	if err != nil {
		return f, fmt.Errorf("the noise floors in %s cannot be read (%w): remove the file and make an A/A run again; until then the default smallest effect counts", path, err)
	}
	return f, nil
}

// KeepFloors keeps the noise floors that an A/A run's judgement holds, in a file
// for each target, and returns how many are new there. A floor of more boots is
// not replaced by one of fewer, unless that was another machine's; of as many, the
// newer run's counts. The error is one of the files; a damaged one is left alone.
func KeepFloors(runsDir string, run *results.Run, s *results.State, j *Judgement) (int, error) {
	byTarget := map[string][]keptFloor{}
	for _, c := range j.Comparisons {
		if c.NoiseFloor != nil {
			byTarget[c.Target] = append(byTarget[c.Target], keptFloor{c.Workload, c.Scenario, c.Metric.Name, Floor{
				HalfWidth: *c.NoiseFloor, Run: run.Name(), Kernel: c.Kernel, Date: run.Meta.Created.UTC().Format("2006-01-02"), Boots: c.Boots[0] + c.Boots[1],
				Machine: identity(s.Model, c.Target)}})
		}
	}
	kept := 0
	var errs []error
	for target, list := range byTarget {
		n, err := keepTarget(filepath.Join(runsDir, FloorsFolder), target, list)
		kept += n
		errs = append(errs, err)
	}
	return kept, errors.Join(errs...)
}

func keepTarget(dir, target string, list []keptFloor) (int, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, fmt.Errorf("noise floor of %s: %w", target, err)
	}
	path := filepath.Join(dir, url.PathEscape(target)+".json")
	f, err := readFloorFile(path)
	if err != nil {
		return 0, err
	}
	f.Target = target
	n := 0
	for _, k := range list {
		i := slices.IndexFunc(f.Floors, func(o keptFloor) bool { return o.key(target) == k.key(target) })
		switch {
		case i < 0:
			f.Floors = append(f.Floors, k)
		case f.Floors[i].Run == k.Run, f.Floors[i].elsewhere(k.Machine) != "", k.Boots > f.Floors[i].Boots, k.Boots == f.Floors[i].Boots && k.Date >= f.Floors[i].Date:
			f.Floors[i] = k
		default:
			continue
		}
		n++
	}
	slices.SortFunc(f.Floors, func(a, b keptFloor) int {
		return cmp.Or(cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.Scenario, b.Scenario), cmp.Compare(a.Metric, b.Metric))
	})
	b, err := json.MarshalIndent(f, "", "  ")
	if err == nil {
		err = renameio.WriteFile(path, append(b, '\n'), 0o644, renameio.WithTempDir(dir))
	}
	if err != nil {
		return 0, fmt.Errorf("noise floor of %s: %w", target, err)
	}
	return n, nil
}

// KeepNoise is what the end of a run calls: of an A/A run it judges the run with
// the findings of the validity rules and keeps its noise floors beside the run
// directories. It returns a sentence for each primary one; of any other run none.
// The error is one of reading the run or of keeping the floors.
func KeepNoise(run *results.Run, findings func(*results.Run, *results.State) []results.Found) ([]string, error) {
	s, err := run.State()
	if err != nil || !s.Plan.Design.NoiseFloor {
		return nil, err
	}
	var o Options
	if findings != nil {
		o.Findings = findings(run, s)
	}
	j := Judge(run.Name(), s, o)
	var out []string
	for _, c := range j.Comparisons {
		if c.Primary {
			out = append(out, fmt.Sprintf("%s, %s.%s %s: %s", c.Target, c.Workload, c.Scenario, c.Metric.Name, c.Sentence))
		}
	}
	_, err = KeepFloors(filepath.Dir(run.Dir()), run, s, j)
	return out, err
}
