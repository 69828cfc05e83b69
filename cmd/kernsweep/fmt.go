package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/live"
)

// layout is one call of fmt.
type layout struct {
	app                    *app
	check, diff, recursive bool
	changed                []string
}

func (a *app) fmtCmd() *cobra.Command {
	l := &layout{app: a}
	c := &cobra.Command{
		Use:   "fmt [FILE|DIR|-]…",
		Short: "Rewrite configuration files in the canonical layout",
		Long: `Rewrite configuration files in the canonical layout, and print the names of those that were changed. Without a name
it is the configuration that -f names; of a folder it is every *.hcl in it; - is standard input, written to
standard output. A file that is no HCL is left as it is.

Exit status: 0 all is well, 1 with --check: something would change, 2 a file is no HCL or cannot be read.`,
		Example: "  kernsweep fmt\n  kernsweep fmt --check --diff testbeds.hcl\n  kernsweep fmt --recursive labs/\n  kernsweep fmt - <testbeds.hcl",
		RunE: func(_ *cobra.Command, names []string) error {
			if len(names) == 0 {
				names = []string{a.file}
			}
			return l.run(names)
		},
	}
	c.Flags().BoolVar(&l.check, "check", false, "change nothing, name the files that would change and exit with 1")
	c.Flags().BoolVar(&l.diff, "diff", false, "show what changes, as diff -u does; the files are changed all the same, unless --check is given")
	c.Flags().BoolVar(&l.recursive, "recursive", false, "also the folders in a folder, without run directories and what is hidden")
	return c
}

// run formats what it can, and says what it could not.
func (l *layout) run(names []string) error {
	var errs []error
	for _, name := range names {
		if name == "-" {
			errs = append(errs, l.stdin())
			continue
		}
		files, err := l.files(name)
		errs = append(errs, err)
		for _, f := range files {
			errs = append(errs, l.file(f))
		}
	}
	if l.app.json {
		if err := l.app.printJSON(map[string][]string{"changed": append([]string{}, l.changed...)}); err != nil {
			return err
		}
	}
	if err := errors.Join(errs...); err != nil {
		return usage(err)
	}
	if l.check && len(l.changed) > 0 {
		return &statusError{status: exitFailed}
	}
	return nil
}

// files are those that a name means.
func (l *layout) files(name string) ([]string, error) {
	st, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !st.IsDir() {
		if !st.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is no file: - reads standard input", name)
		}
		return []string{name}, nil
	}
	var files []string
	err = filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == name:
		case d.IsDir() && (!l.recursive || strings.HasPrefix(d.Name(), ".") || isRun(path)):
			return fs.SkipDir
		case !d.IsDir() && strings.HasSuffix(path, ".hcl") && !strings.HasPrefix(d.Name(), "."):
			files = append(files, path)
		}
		return nil
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s holds no *.hcl file", name)
	}
	return files, err
}

// isRun: what a run was made with stays as it was.
func isRun(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "run.json"))
	return err == nil
}

func (l *layout) stdin() error {
	old, err := io.ReadAll(l.app.in)
	if err != nil {
		return err
	}
	now, err := l.formatted("<stdin>", old)
	if err != nil {
		return err
	}
	if !l.check && !l.diff && !l.app.json {
		_, err = l.app.out.Write(now)
	}
	l.note("<stdin>", old, now, false)
	return err
}

func (l *layout) file(name string) error {
	old, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	now, err := l.formatted(name, old)
	if err != nil {
		return err
	}
	if !l.check && !bytes.Equal(old, now) {
		path, err := filepath.EvalSymlinks(name) // a link stays one
		if err != nil {
			return err
		}
		if err := replaceFile(path, now); err != nil {
			return err
		}
	}
	l.note(name, old, now, true)
	return nil
}

// formatted is the text in its canonical layout, which is that of itself.
func (l *layout) formatted(name string, old []byte) ([]byte, error) {
	if diags := config.SyntaxOf(name, old); diags.HasErrors() {
		for _, d := range diags {
			fmt.Fprintln(l.app.err, d)
		}
		return nil, fmt.Errorf("%s is left as it is: it cannot be parsed", live.Safe(name))
	}
	now := config.Format(old)
	for range 3 { // a comment may need a second time
		again := config.Format(now)
		if bytes.Equal(again, now) {
			break
		}
		now = again
	}
	return now, nil
}

// note remembers and shows what is changed.
func (l *layout) note(name string, old, now []byte, named bool) {
	if bytes.Equal(old, now) {
		return
	}
	l.changed = append(l.changed, name)
	if l.app.json {
		return
	}
	if named || l.check {
		fmt.Fprintln(l.app.out, live.Safe(name))
	}
	if l.diff {
		for line := range strings.Lines(string(diff.Diff(name, old, name, now))) {
			if !strings.HasPrefix(line, "diff ") {
				fmt.Fprintln(l.app.out, live.Safe(strings.TrimSuffix(line, "\n")))
			}
		}
	}
}
