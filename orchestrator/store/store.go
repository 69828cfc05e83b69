// Package store keeps what a run booted and ran: the bytes of images and agents
// by their SHA-256, beside the run directories, and in each run a record of
// which of them belong to it and what the configuration said. A run boots from
// here, so that a file that is overwritten meanwhile changes nothing, and a
// rerun boots what the run booted.
package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// Folder is the name of the store in the folder of the run directories.
const Folder = "store"

const (
	lockName   = ".lock"
	newPrefix  = ".new-"
	gonePrefix = ".gone-"
	lockRetry  = 20 * time.Millisecond
	lockWait   = 5 * time.Minute // for a prune, which only renames while it holds the lock
)

// Store is a folder of files by hash: HASH/NAME. Several processes may use it
// at once.
type Store struct{ dir string }

// Open is the store of a folder of run directories. Nothing is made before
// something is put there.
func Open(runs string) (*Store, error) {
	abs, err := filepath.Abs(runs)
	if err != nil {
		return nil, fmt.Errorf("store of %s: %w", runs, err)
	}
	return &Store{filepath.Join(abs, Folder)}, nil
}

// Path is where the entry lies, absolute, whether it is there or not.
func (s *Store) Path(hash, name string) string { return filepath.Join(s.dir, hash, name) }

// Hold keeps Prune away until release is called: what is put meanwhile may be
// named in a run.json only later. It waits for a Prune at work. Where files
// cannot be locked, Prune spares what is young instead.
func (s *Store) Hold(ctx context.Context) (release func(), err error) {
	if err := os.MkdirAll(s.dir, 0o777); err != nil {
		return nil, explain(err)
	}
	ctx, stop := context.WithTimeoutCause(ctx, lockWait, errors.New("another kernsweep prunes it; wait for that to end"))
	defer stop()
	f := s.lock()
	_, err = f.TryRLockContext(ctx, lockRetry)
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("store %s: %w", s.dir, context.Cause(ctx))
	case err != nil && !unlockable(err):
		return nil, fmt.Errorf("store %s: lock: %w", s.dir, err)
	}
	return func() { _ = f.Close() }, nil
}

// lock is shared by everybody who may read the store.
func (s *Store) lock() *flock.Flock {
	return flock.New(filepath.Join(s.dir, lockName), flock.SetPermissions(0o666))
}

// unlockable tells a file system without flock, or without room for the file.
func unlockable(err error) bool {
	for _, e := range []error{syscall.ENOLCK, syscall.ENOSYS, syscall.EOPNOTSUPP, syscall.ENOSPC, syscall.EDQUOT} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Verify reads the entry and compares its hash. The error says what is wrong
// with it: fs.ErrNotExist when it is not there.
func (s *Store) Verify(ctx context.Context, hash, name string) error {
	path := s.Path(hash, name)
	st, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", path)
	}
	got, err := Hash(ctx, path)
	if err != nil {
		return err
	}
	if got != hash {
		return fmt.Errorf("%s is damaged: its bytes have the hash %s…", path, got[:12])
	}
	return nil
}

// Hash is the SHA-256 of a file, hexadecimal.
func Hash(ctx context.Context, path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if err := copyFile(ctx, h, f); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// copyFile is io.Copy that can be cancelled; between files the kernel copies.
func copyFile(ctx context.Context, to io.Writer, from *os.File) error {
	const step = 32 << 20
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := io.CopyN(to, from, step)
		if errors.Is(err, io.EOF) && n < step {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// isHash tells an entry's folder from everything else.
func isHash(name string) bool {
	return len(name) == 2*sha256.Size && strings.Trim(name, "0123456789abcdef") == ""
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
