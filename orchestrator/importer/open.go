package importer

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"kernsweep/orchestrator/results"
)

// largest file that is read, in bytes: what is read is held in memory.
const largest = 1 << 30

// Open reads the files that arguments of the form [KERNEL=]FILE name; "-" is
// standard input. A file that is there under the whole argument is that file.
func Open(args []string, stdin io.Reader) ([]File, error) {
	var files []File
	var errs []error
	var seen []os.FileInfo // of files
	for _, arg := range args {
		f := File{Name: arg}
		if kernel, name, ok := strings.Cut(arg, "="); ok && !there(arg) {
			f.Kernel, f.Name = kernel, name
			if err := nameable(kernel); err != nil {
				errs = append(errs, fmt.Errorf("%s: before the \"=\" stands a kernel: %w", shown(arg), err))
				continue
			}
		}
		var err error
		if f.Data, err = bytesOf(f.Name, stdin); err != nil {
			errs = append(errs, err)
			continue
		}
		// The same file by another path: told here, for its bytes alone prove nothing.
		info, err := os.Stat(f.Name)
		if err == nil && f.Name != "-" {
			if i := slices.IndexFunc(seen, func(x os.FileInfo) bool { return os.SameFile(x, info) }); i >= 0 {
				return nil, fmt.Errorf("%s is a file that is named already (%s): its figures would count twice", shown(f.Name), shown(seen[i].Name()))
			}
			seen = append(seen, info)
		}
		files = append(files, f)
	}
	return files, joined(errs, len(args))
}

func there(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

func bytesOf(name string, stdin io.Reader) ([]byte, error) {
	if name == "" {
		return nil, errors.New("a file's name is empty: write KERNEL=FILE, or FILE")
	}
	in := stdin
	if name != "-" {
		info, err := os.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("%s: there is no such file", shown(name))
		case err != nil:
			return nil, fmt.Errorf("%s: %w", shown(name), errors.Unwrap(err))
		case info.IsDir():
			return nil, fmt.Errorf("%s is a folder: name the files in it", shown(name))
		case !info.Mode().IsRegular():
			return nil, fmt.Errorf("%s is no plain file: name one, or - for standard input", shown(name))
		case info.Size() > largest:
			return nil, fmt.Errorf("%s has %d MB, more than the %d that are read: cut it into parts, and add them with --run", shown(name), info.Size()>>20, largest>>20)
		}
		f, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", shown(name), errors.Unwrap(err))
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, largest+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", shown(name), err)
	}
	if len(b) > largest {
		return nil, fmt.Errorf("%s has more than the %d MB that are read: cut it into parts, and add them with --run", shown(name), largest>>20)
	}
	return b, nil
}

// DefaultsFrom takes the target and the baseline of a run that is added to,
// where they are the only ones and nobody named others.
func (o *Options) DefaultsFrom(run *results.Run) {
	p, err := run.ReadPlan(nil)
	if err != nil {
		return // Add says what is wrong with it
	}
	if o.Target == "" && len(p.Targets) == 1 {
		o.Target = p.Targets[0].Name
	}
	o.Inherited = p
}
