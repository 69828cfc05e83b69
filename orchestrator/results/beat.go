package results

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// renew keeps the owner file's time moving until stop is closed, so that another
// machine can see that this process lives.
func (l *runLock) renew(every time.Duration, stop <-chan struct{}) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-stop:
			return
		case now := <-t.C:
			if l.held() == nil {
				_ = os.Chtimes(l.mine.path, now, now) // where it fails, the next append says why
			}
		}
	}
}

// silent watches the claim of a holder on another machine: gone when it is not
// renewed for silentBeats beats by this machine's own clock. The error says that
// it is renewed. Neither: the claim is another's now, or there is none.
func (l *runLock) silent(ctx context.Context, c claim) (gone bool, err error) {
	limit := silentBeats * beat
	if c.BeatMS > 0 {
		limit = min(10*time.Minute, silentBeats*time.Duration(c.BeatMS)*time.Millisecond)
	}
	if l.say != nil {
		l.say(fmt.Sprintf("run %s is held by %s; looking for up to %s whether it still lives", l.dir, c.Holder, limit))
	}
	first, err := stamp(c)
	if err != nil {
		return false, nil // changed already
	}
	t := time.NewTicker(max(limit/30, 10*time.Millisecond))
	defer t.Stop()
	for began := time.Now(); time.Since(began) < limit; {
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("run %s: waiting to see whether %s still lives: %w", l.dir, c.Holder, context.Cause(ctx))
		case <-t.C:
		}
		now, err := stamp(c)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, errChanged):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("run %s: %s: %w", l.dir, ownerFile, err)
		case now != first:
			return false, &LockedError{Dir: l.dir, Holder: c.Holder, Hint: "it lives, as its claim is being renewed: wait for it, or end it there"}
		}
	}
	return true, nil
}

var errChanged = errors.New("the claim is another's")

// stamp is when a claim was last renewed, in its file server's time. The file is
// opened for it: that makes NFS ask the server.
func stamp(c claim) (int64, error) {
	f, err := openPlain(c.path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	now, err := readClaim(c.path)
	if err != nil {
		return 0, err
	}
	if now.key() != c.key() {
		return 0, errChanged
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.ModTime().UnixNano(), nil
}
