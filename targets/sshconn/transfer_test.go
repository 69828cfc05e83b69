package sshconn

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

// TestFullAndLockedFileSystems gives each session a mount namespace in which
// dir is unfit in one way.
func TestFullAndLockedFileSystems(t *testing.T) {
	server := targetstest.Tool(t, "sftp-server", "/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server")
	flags := "-m"
	if os.Geteuid() != 0 {
		flags = "-rm"
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, sftp := range []string{"Subsystem sftp " + server, "#no-sftp"} {
		for _, c := range []struct {
			name, mount string
			mode        fs.FileMode
			size        int
			want        syscall.Errno
			say         string
		}{
			{"full", "mount -t tmpfs -o size=32k none DIR", 0o600, 100_000, syscall.ENOSPC, "no room"},
			{"read-only", "mount --bind DIR DIR; mount -o remount,bind,ro DIR", 0o600, 10, syscall.EROFS, "read-only"},
			{"noexec", "mount --bind DIR DIR; mount -o remount,bind,noexec DIR", 0o700, 10, syscall.EACCES, "noexec"},
		} {
			t.Run(c.name+" "+sftp[:5], func(t *testing.T) {
				dir := t.TempDir()
				mount := strings.ReplaceAll(c.mount, "DIR", dir)
				d := targetstest.SSHD(t, sftp, `ForceCommand exec unshare `+flags+` sh -c '`+mount+`; exec sh -c "$SSH_ORIGINAL_COMMAND"'`)
				conn := dial(t, d.SSH, targets.DialOptions{})
				defer conn.Close()
				err := conn.Put(ctx, filepath.Join(dir, "file"), c.mode, bytes.NewReader(make([]byte, c.size)))
				var link *targets.LinkError
				if !errors.Is(err, c.want) || errors.As(err, &link) || !strings.Contains(err.Error(), c.say) {
					t.Errorf("got %v; want %v, and the word %q", err, c.want, c.say)
				}
				if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
					t.Errorf("left behind: %v, %v", left, err)
				}
			})
		}
	}
}

// A subsystem that is no SFTP server must not stop files from going.
func TestBrokenSFTPServers(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, program := range []string{"/no/such/sftp-server", "/bin/echo Welcome to this machine", "/bin/true"} {
		d := targetstest.SSHD(t, "Subsystem sftp "+program)
		var notes []string
		conn := dial(t, d.SSH, targets.DialOptions{Note: func(n string) { notes = append(notes, n) }})
		path := filepath.Join(t.TempDir(), "file")
		for range 2 {
			if err := conn.Put(ctx, path, 0o600, strings.NewReader("content")); err != nil {
				t.Errorf("%s: %v", program, err)
			}
		}
		conn.Close()
		if b, err := os.ReadFile(path); err != nil || string(b) != "content" {
			t.Errorf("%s: %q, %v", program, b, err)
		}
		if len(notes) != 1 || !strings.Contains(notes[0], "plain channel") {
			t.Errorf("%s: notes %q; want one", program, notes)
		}
	}
}

// stalling gives one piece and then nothing until it is released.
type stalling struct {
	sent    bool
	release chan struct{}
	reached chan struct{}
}

func (s *stalling) Read(p []byte) (int, error) {
	if !s.sent {
		s.sent = true
		return copy(p, "half a file"), nil
	}
	close(s.reached)
	<-s.release
	return 0, errors.New("released")
}

func TestAStoppedTransferLeavesTheOldFile(t *testing.T) {
	for _, line := range []string{"#", "#no-sftp"} {
		d := targetstest.SSHD(t, line)
		conn := dial(t, d.SSH, targets.DialOptions{})
		dir := t.TempDir()
		path := filepath.Join(dir, "file")
		if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		source := &stalling{release: make(chan struct{}), reached: make(chan struct{})}
		go func() {
			<-source.reached
			cancel()
		}()
		if err := conn.Put(ctx, path, 0o600, source); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v; want that it was cancelled", line, err)
		}
		close(source.release)
		conn.Close()
		if b, err := os.ReadFile(path); err != nil || string(b) != "old" {
			t.Errorf("%s: the old file is now %q, %v", line, b, err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
			t.Errorf("%s: left behind: %v, %v", line, left, err)
		}
	}
}
