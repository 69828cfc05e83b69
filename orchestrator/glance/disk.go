package glance

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"kernsweep/orchestrator"
	"kernsweep/orchestrator/results"
)

const (
	// What is taken for a boot and a trial of a target that no earlier run has:
	// console, kernel log and probe; spool, samples and output.
	bootBytes  = 1 << 20
	trialBytes = 256 << 10

	diskRuns  = 5      // newest runs that are looked at
	diskFiles = 20_000 // files of them that are counted at most
	spare     = 256 << 20
)

// Disk is the room that a run needs, in bytes.
type Disk struct {
	Need   int64  `json:"need"`   // of the run itself
	Images int64  `json:"images"` // of what its images add to the store
	Free   int64  `json:"free"`   // -1: not known
	From   string `json:"from"`   // where Need comes from
}

// Short says that there is too little, with a reserve.
func (d Disk) Short() bool { return d.Free >= 0 && d.Need+d.Images+spare > d.Free }

// need estimates the room by what earlier runs took for a boot of each target.
func need(f Facts) Disk {
	d := Disk{From: "a rule: 1 MB a boot, 256 kB a trial"}
	d.Images = images(f)
	d.Free = Free(f.Runs)
	seen, known := perTrial(f.Runs), 0
	for _, l := range f.Plan.Lanes {
		trials := int64(0)
		for _, b := range l.Boots {
			trials += int64(len(b.Trials))
		}
		if each, ok := seen[l.Target]; ok {
			known++
			d.Need += each * trials
		} else {
			d.Need += int64(len(l.Boots))*bootBytes + trials*trialBytes
		}
	}
	switch {
	case known == len(f.Plan.Lanes):
		d.From = "earlier runs"
	case known > 0:
		d.From = "earlier runs, and where there are none " + d.From
	}
	return d
}

// images is what the images of a plan add to the store: files whose name and size
// an entry has are there already.
func images(f Facts) int64 {
	type file struct {
		name string
		size int64
	}
	stored := map[file]bool{}
	list, _ := filepath.Glob(filepath.Join(f.Runs, "store", strings.Repeat("[0-9a-f]", 64), "*"))
	for _, path := range list {
		if st, err := os.Stat(path); err == nil {
			stored[file{filepath.Base(path), st.Size()}] = true
		}
	}
	n := int64(0)
	for _, path := range orchestrator.ImageFiles(f.Lab, f.Plan) {
		if st, err := os.Stat(path); err == nil && !stored[file{filepath.Base(path), st.Size()}] {
			n += st.Size()
			stored[file{filepath.Base(path), st.Size()}] = true
		}
	}
	return n
}

// Free is the room left in the file system of a folder that may not be there yet,
// in bytes for this user; -1: not known.
func Free(dir string) int64 {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return -1
	}
	for {
		var st syscall.Statfs_t
		err := syscall.Statfs(abs, &st)
		if err == nil {
			return int64(st.Bavail) * int64(st.Bsize)
		}
		if abs == filepath.Dir(abs) {
			return -1
		}
		abs = filepath.Dir(abs)
	}
}

// perTrial is what the newest runs took on disk for each trial of a target, its
// boots included, in bytes.
func perTrial(runs string) map[string]int64 {
	names, err := results.List(runs)
	if err != nil {
		return nil
	}
	sum, n, left := map[string]int64{}, map[string]int64{}, diskFiles
	for _, name := range slices.Backward(names[max(0, len(names)-diskRuns):]) {
		lanes, _ := os.ReadDir(filepath.Join(runs, name))
		for _, l := range lanes {
			if l.IsDir() && left > 0 {
				bytes, attempts := lane(filepath.Join(runs, name, l.Name()), &left)
				sum[l.Name()] += bytes
				n[l.Name()] += attempts
			}
		}
	}
	each := map[string]int64{}
	for l, attempts := range n {
		if attempts > 0 {
			each[l] = sum[l] / attempts
		}
	}
	return each
}

// lane is what a lane's folder takes, and how many attempts are in it.
func lane(dir string, left *int) (bytes, attempts int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if *left--; *left < 0 {
			return filepath.SkipAll
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), "attempt-") {
			attempts++
		}
		if info, err := d.Info(); err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				bytes += st.Blocks * 512
			}
		}
		return nil
	})
	return bytes, attempts
}
