package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	copyTries = 5 // of a file that changes while it is copied
	copyPause = 200 * time.Millisecond
	spare     = 4 << 20 // bytes that copying leaves free, for the run itself
)

// errChanged says that a file was written to while it was copied.
var errChanged = errors.New("it changed while it was copied")

// Entry is a stored file.
type Entry struct {
	Hash string // SHA-256, hexadecimal
	Path string // in the store
	Size int64  // bytes
}

// Put copies files into the store and returns their entries by path. Room for
// all of them is looked for before the first is copied. A file that is there
// already is verified, and replaced when it is damaged.
func (s *Store) Put(ctx context.Context, paths []string) (map[string]Entry, error) {
	release, err := s.Hold(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	out := map[string]Entry{}
	var missing []string
	var need int64
	for _, p := range paths {
		e, err := s.find(ctx, p)
		switch {
		case err == nil:
			out[p] = e
		case e.Hash == "":
			return nil, fmt.Errorf("image %s: %w", p, err)
		default:
			missing, need = append(missing, p), need+e.Size
		}
	}
	if err := s.room(need, len(missing)); err != nil {
		return nil, err
	}
	for _, p := range missing {
		e, err := s.copySettled(ctx, p)
		if err != nil {
			return nil, err
		}
		out[p] = e
	}
	return out, nil
}

// find is the entry that a file has already; the error says that it has none,
// or, without a hash, that the file cannot be read.
func (s *Store) find(ctx context.Context, path string) (Entry, error) {
	st, err := os.Stat(path)
	if err != nil {
		return Entry{}, err
	}
	if !st.Mode().IsRegular() {
		return Entry{}, errors.New("not a regular file")
	}
	hash, err := Hash(ctx, path)
	if err != nil {
		return Entry{}, err
	}
	e := Entry{hash, s.Path(hash, filepath.Base(path)), st.Size()}
	return e, s.Verify(ctx, hash, filepath.Base(path))
}

// room refuses a copy that would not fit.
func (s *Store) room(need int64, files int) error {
	if files == 0 {
		return nil
	}
	var st syscall.Statfs_t
	if err := syscall.Statfs(s.dir, &st); err != nil {
		return fmt.Errorf("store %s: %w", s.dir, err)
	}
	if free := int64(st.Bavail) * int64(st.Bsize); free < need+spare {
		return fmt.Errorf("store %s: %d image files of %s have to be kept there, and only %s are free: make room (kernsweep prune --dry-run shows what could go), or choose another folder with --runs",
			s.dir, files, Bytes(need), Bytes(free))
	}
	return nil
}

// copySettled copies a file, again when somebody writes to it meanwhile.
func (s *Store) copySettled(ctx context.Context, path string) (Entry, error) {
	for try := 1; ; try++ {
		e, err := s.copy(ctx, path)
		switch {
		case err == nil:
			return e, nil
		case !errors.Is(err, errChanged):
			return e, fmt.Errorf("image %s: %w", path, err)
		case try == copyTries:
			return e, fmt.Errorf("image %s: %w, %d times: something writes to it (a build?); wait for that to end, then try again", path, err, try)
		}
		t := time.NewTimer(time.Duration(try) * copyPause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return e, context.Cause(ctx)
		}
	}
}

func (s *Store) copy(ctx context.Context, path string) (e Entry, err error) {
	from, err := os.Open(path)
	if err != nil {
		return e, err
	}
	defer from.Close()
	before, err := from.Stat()
	if err != nil {
		return e, err
	}
	return s.add(ctx, filepath.Base(path), before.Mode().Perm()&0o444|0o400, func(to *os.File) error {
		if err := copyFile(ctx, to, from); err != nil {
			return err
		}
		after, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("%w (%w)", errChanged, err)
		}
		if !os.SameFile(before, after) || before.Size() != after.Size() || !before.ModTime().Equal(after.ModTime()) {
			return errChanged
		}
		return nil
	})
}

// PutBytes keeps data under a name and returns its hash. Call it under Hold.
func (s *Store) PutBytes(ctx context.Context, name string, data []byte) (hash string, err error) {
	sum := sha256.Sum256(data)
	hash = hex.EncodeToString(sum[:])
	if s.Verify(ctx, hash, name) == nil {
		return hash, nil
	}
	e, err := s.add(ctx, name, 0o444, func(to *os.File) error {
		_, err := to.Write(data)
		return err
	})
	return e.Hash, err
}

// add makes an entry: what fill writes goes beside it, is made durable, hashed
// as it was stored, and renamed into place.
func (s *Store) add(ctx context.Context, name string, mode fs.FileMode, fill func(*os.File) error) (e Entry, err error) {
	tmp, err := os.CreateTemp(s.dir, newPrefix)
	if err != nil {
		return e, explain(err)
	}
	defer os.Remove(tmp.Name()) // gone already when all went well
	err = fill(tmp)
	if err == nil {
		err = errors.Join(tmp.Chmod(mode), tmp.Sync())
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return e, explain(err)
	}
	st, err := os.Stat(tmp.Name())
	if err != nil {
		return e, err
	}
	if e.Hash, err = Hash(ctx, tmp.Name()); err != nil {
		return e, err
	}
	e.Path, e.Size = s.Path(e.Hash, name), st.Size()
	dir := filepath.Dir(e.Path)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return e, explain(err)
	}
	if err := os.Rename(tmp.Name(), e.Path); err != nil {
		return e, explain(err)
	}
	return e, errors.Join(syncDir(dir), syncDir(s.dir))
}

func explain(err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: the store cannot be written; choose another folder with --runs", err)
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: the disk of the store is full; make room (kernsweep prune --dry-run shows what could go), or choose another folder with --runs", err)
	}
	return err
}

// Bytes is a size for people.
func Bytes(n int64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%d GB", n>>30)
	case n >= 10<<20:
		return fmt.Sprintf("%d MB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d kB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
