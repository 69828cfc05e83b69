package deploy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"kernsweep/workloads/vmstat"
	"kernsweep/workloads/wire"
)

// split writes stdout, stderr and vmstat.csv from the spool here, torn or not.
// Without any spool it does nothing.
func (r *run) split() error {
	f, err := os.Open(r.file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	s, err := wire.Read(f)
	if err != nil && !errors.Is(err, wire.ErrTorn) {
		return fmt.Errorf("%s: %w", r.file, err)
	}
	at := func(name string) string { return filepath.Join(r.t.Dir, r.t.Prefix+name) }
	if err := os.WriteFile(at("stdout"), s.Stdout, 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(at("stderr"), s.Stderr, 0o644); err != nil {
		return err
	}
	return writeVMStat(at("vmstat.csv"), s.Snapshots)
}

func writeVMStat(path string, snaps []wire.Snapshot) error {
	rows, _ := vmstat.Rows(snaps) // its warnings are the report's, which reads the spool
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	err = vmstat.WriteCSV(f, rows)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
