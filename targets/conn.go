package targets

import (
	"context"
	"fmt"
	"io"
	"io/fs"
)

// Cmd is one command on a machine. Argv arrives there byte for byte, whatever
// the login shell is; quoting is the Conn's business.
type Cmd struct {
	Argv   []string
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// Quiet asks for silence on the link while the command runs (law 8): no
	// keepalives, no probes. The context's deadline decides instead.
	Quiet bool
}

// Exit says how a remote command ended; exactly one of the three holds. A lost
// link is the fourth way, and it is an error (LinkError), not an Exit.
type Exit struct {
	Code     int    // exit status, when neither of the others holds
	Signal   string // "KILL", without SIG, as RFC 4254 section 6.10 names it
	NoStatus bool   // the channel closed without status while the link lives
}

// OK reports whether the command exited with status 0.
func (e Exit) OK() bool { return e.Code == 0 && e.Signal == "" && !e.NoStatus }

func (e Exit) String() string {
	switch {
	case e.Signal != "":
		return "was killed by SIG" + e.Signal
	case e.NoStatus:
		return "ended without an exit status while the link lives (was its server process killed?)"
	default:
		return fmt.Sprintf("exited with status %d", e.Code)
	}
}

// LinkError means the link to a machine failed, not the program run over it.
type LinkError struct {
	Phase string // "connect", "handshake", "log in", "exec", "transfer"
	Err   error
	// Refused says that trying again changes nothing: a host key that is not
	// accepted, no common algorithm, a setting that cannot work.
	Refused bool
	// Hop is the jump host that failed on the way, "" when it was the machine
	// itself: then nothing is said about the machine.
	Hop string
}

func (e *LinkError) Error() string { return e.Phase + ": " + e.Err.Error() }
func (e *LinkError) Unwrap() error { return e.Err }

// Conn is a logged-in link to one machine, safe for concurrent use.
type Conn interface {
	// Run runs c and waits for it. The error is a *LinkError, or wraps the
	// context's own error and says how far it came; a program that fails is an Exit.
	Run(ctx context.Context, c Cmd) (Exit, error)
	// Put writes r to path with mode, replacing what was there in one step.
	Put(ctx context.Context, path string, mode fs.FileMode, r io.Reader) error
	// Get copies the file at path to w.
	Get(ctx context.Context, path string, w io.Writer) error
	Close() error
}

// WithPath is argv with the directories of path, joined by colons, in front of
// PATH: programs are looked up there first, and so are those they start. An
// empty path leaves argv alone.
func WithPath(path string, argv []string) []string {
	if path == "" || len(argv) == 0 {
		return argv
	}
	return append([]string{"/bin/sh", "-c", `PATH=$1${PATH:+:$PATH}; export PATH; shift; exec "$@"`, "sh", path}, argv...)
}

// DialOptions belong to one dial.
type DialOptions struct {
	// AfterBoot says that kernsweep itself just booted the machine, so a
	// changed host key may be accepted where the target allows it.
	AfterBoot bool
	// Note receives facts for the journal: an accepted host key, negotiated
	// legacy algorithms. May be nil.
	Note func(string)
	// Server receives what the target's server shows of itself once it let us in;
	// for this SFTP is tried. May be nil.
	Server func(ServerFacts)
}

// DialFunc opens a Conn. Its error is a *LinkError.
type DialFunc func(ctx context.Context, s SSH, o DialOptions) (Conn, error)
