package files

import (
	"archive/tar"
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"
)

// unpack writes what is in an archive from the target. Links and devices are left
// out and counted; a name that leads out of the folder is refused.
func (p *puller) unpack(r *bufio.Reader) error {
	t := tar.NewReader(r)
	type folder struct {
		name string
		facts
	}
	var folders []folder
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			if errors.Is(err, errBroken) {
				return err
			}
			return fmt.Errorf("the archive from the target: %w", err)
		}
		at, ok := p.inside(h.Name)
		if !ok {
			continue
		}
		f := facts{fs.FileMode(h.Mode).Perm(), h.ModTime}
		switch h.Typeflag {
		case tar.TypeDir:
			err = p.root.MkdirAll(at, 0o755)
			folders = append(folders, folder{at, f})
		case tar.TypeReg, tar.TypeGNUSparse:
			err = p.file(at, f, t)
		case tar.TypeLink:
			err = p.hard(at, h.Linkname)
		default:
			p.got.Left[kindOf(h.FileInfo().Mode())]++
		}
		switch why := unwritable(err); {
		case why != nil:
			p.refuse(h.Name, why.Error()) // this name cannot be here; the others can
		case err != nil:
			return err
		}
	}
	for i := len(folders) - 1; i >= 0; i-- {
		f := folders[i]
		if f.name == "." {
			continue
		}
		// What may not be written to could not be removed either.
		_ = p.root.Chmod(f.name, f.mode|0o700)
		_ = p.root.Chtimes(f.name, time.Now(), f.time)
	}
	_, err := io.Copy(io.Discard, r) // padding: or tar would be ended by a closed pipe
	return err
}

// unwritable is the reason why a name cannot be written here, nil where err is
// another one: of the archive, of the link, of a disk that is full.
func unwritable(err error) error {
	var file *fs.PathError
	var two *os.LinkError
	switch {
	case errors.Is(err, errBroken) || errors.Is(err, io.ErrUnexpectedEOF) || full(err):
	case errors.As(err, &file):
		return file.Err
	case errors.As(err, &two):
		return two.Err
	}
	return nil
}

// hard makes a second name for a file of the same archive.
func (p *puller) hard(at, of string) error {
	if path.IsAbs(of) || !filepath.IsLocal(path.Clean(of)) {
		p.refuse(at, "a hard link to "+of+", out of the folder")
		return nil
	}
	_ = p.root.Remove(at) // of an earlier pull; what cannot be removed fails below
	if err := p.root.Link(path.Join(p.base, path.Clean(of)), at); err != nil {
		p.refuse(at, "a hard link to "+of+": "+err.Error())
		return nil
	}
	p.got.Files++
	return nil
}
