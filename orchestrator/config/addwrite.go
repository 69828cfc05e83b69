package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/google/renameio/v2"
)

const (
	lockTime  = 3 * time.Second
	lockRetry = 20 * time.Millisecond
)

// Write puts the file with the new block in the place of the old one, in one
// step, with its permissions and owner. When the file is no longer what it was
// when it was read, nothing is written. ctx ends the wait for others that write.
func (x *Addition) Write(ctx context.Context) error {
	path := x.File
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // a link stays one
	}
	if x.fresh {
		return x.create(path)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	// Another kernsweep that adds at the same time waits here, and then sees that
	// the file has changed.
	if err := lock(ctx, f); err != nil {
		return fmt.Errorf("%s cannot be locked, and nothing is written: %w", x.File, err)
	}
	now, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Equal(now, x.old) {
		return fmt.Errorf("%s was changed by somebody else meanwhile; nothing is written: try again", x.File)
	}
	p, err := renameio.NewPendingFile(path, renameio.WithPermissions(0o644), renameio.WithExistingPermissions(), renameio.WithTempDir(filepath.Dir(path)))
	if err != nil {
		return err
	}
	defer func() { _ = p.Cleanup() }()
	if info, err := f.Stat(); err == nil {
		if own, ok := info.Sys().(*syscall.Stat_t); ok {
			_ = p.Chown(int(own.Uid), int(own.Gid)) // only root can give files away, and only root must
		}
	}
	if _, err := p.Write(x.now); err != nil {
		return err
	}
	return p.CloseAtomicallyReplace()
}

// lock waits for others that write, who take milliseconds.
func lock(ctx context.Context, f *os.File) error {
	ctx, stop := context.WithTimeoutCause(ctx, lockTime, fmt.Errorf("another process holds its lock for more than %s", lockTime))
	defer stop()
	again := time.NewTicker(lockRetry)
	defer again.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// create makes a file that must not exist, in one step.
func (x *Addition) create(path string) error {
	t, err := os.CreateTemp(filepath.Dir(path), ".kernsweep-*")
	if err != nil {
		return err
	}
	defer os.Remove(t.Name())
	_, err = t.Write(x.now)
	err = errors.Join(err, t.Chmod(0o644), t.Sync(), t.Close())
	if err == nil {
		err = os.Link(t.Name(), path)
	}
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s was made by somebody else meanwhile; nothing is written: try again", x.File)
	}
	return err
}
