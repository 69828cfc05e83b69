// Package agentbin holds the cross-compiled agents. scripts/build fills bin/
// before it builds the controller; without that, Get builds the agent it is
// asked for with the local Go toolchain, once per source state.
package agentbin

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
)

//go:embed all:bin
var embedded embed.FS

// Binary is one agent.
type Binary struct {
	Arch string // GOARCH
	GZ   []byte // the program, gzipped
	Size int64  // of the program, in bytes
	Hash string // SHA-256 of the program, hexadecimal
}

// Arches are the architectures (GOARCH) that agents exist for.
func Arches() []string {
	return []string{"amd64", "arm64", "arm", "386", "mips", "mipsle", "mips64", "mips64le", "riscv64"}
}

// BuildEnv is the environment of a build for arch. Small devices have no
// floating-point unit, and the oldest ARM cores in use are v5.
func BuildEnv(arch string) []string {
	return []string{"GOOS=linux", "GOARCH=" + arch, "GOARM=5", "GO386=softfloat", "GOMIPS=softfloat",
		"GOMIPS64=softfloat", "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "GOEXPERIMENT="}
}

// Get returns the agent for arch: the embedded one, else one built from source
// and kept in the user's cache folder, which note is told about.
func Get(ctx context.Context, arch string, note func(string)) (*Binary, error) {
	if !slices.Contains(Arches(), arch) {
		return nil, fmt.Errorf("there is no agent for architecture %q (there is for %s)", arch, strings.Join(Arches(), ", "))
	}
	gz, err := embedded.ReadFile("bin/agent-" + arch + ".gz")
	if err != nil {
		gz, err = build(ctx, arch, note)
	}
	if err != nil {
		return nil, err
	}
	raw, err := (&Binary{GZ: gz}).Raw()
	if err != nil {
		return nil, fmt.Errorf("agent for %s: %w", arch, err)
	}
	return binary(arch, raw, gz), nil
}

// Pack makes a Binary of a program that was kept elsewhere: an agent of an
// earlier run, or the script that stands in for one (with an arch of "").
func Pack(arch string, raw []byte) (*Binary, error) {
	gz, err := compress(raw)
	if err != nil {
		return nil, err
	}
	return binary(arch, raw, gz), nil
}

func binary(arch string, raw, gz []byte) *Binary {
	sum := sha256.Sum256(raw)
	return &Binary{Arch: arch, GZ: gz, Size: int64(len(raw)), Hash: hex.EncodeToString(sum[:])}
}

// Raw is the program itself.
func (b *Binary) Raw() ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(b.GZ))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// build compiles the agent from the source tree that this package was built from.
func build(ctx context.Context, arch string, note func(string)) ([]byte, error) {
	fail := func(why string, err error) ([]byte, error) {
		return nil, fmt.Errorf("this kernsweep has no agent for %s built in, and %s: %w; build it with scripts/build", arch, why, err)
	}
	root, err := moduleRoot()
	if err != nil {
		return fail("its source tree is not here", err)
	}
	gobin, err := exec.LookPath("go")
	if err != nil {
		return fail("the Go toolchain is not installed", err)
	}
	key, err := sourceHash(root)
	if err != nil {
		return fail("its source cannot be read", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return fail("there is no cache folder", err)
	}
	file := filepath.Join(cache, "kernsweep", "agents", key, "agent-"+arch+".gz")
	if gz, err := os.ReadFile(file); err == nil {
		return gz, nil
	}
	if note != nil {
		note("building the agent for " + arch + " with the local Go toolchain (scripts/build would have embedded it)")
	}
	gz, err := compile(ctx, gobin, root, arch)
	if err != nil {
		return fail("building it failed", err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fail("it cannot be kept", err)
	}
	if err := renameio.WriteFile(file, gz, 0o644); err != nil {
		return fail("it cannot be kept", err)
	}
	return gz, nil
}

func compile(ctx context.Context, gobin, root, arch string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "kernsweep-agent")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "agent")
	c := exec.CommandContext(ctx, gobin, "build", "-trimpath", "-ldflags", "-s -w", "-o", out, "./cmd/kernsweep-agent")
	c.Dir, c.Env = root, append(os.Environ(), BuildEnv(arch)...)
	if msg, err := c.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, bytes.TrimSpace(msg))
	}
	raw, err := os.ReadFile(out)
	if err != nil {
		return nil, err
	}
	return compress(raw)
}

func compress(raw []byte) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(raw); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// moduleRoot finds the source tree through this file's recorded path, which
// -trimpath removes.
func moduleRoot() (string, error) {
	_, file, _, _ := runtime.Caller(0)
	root := filepath.Join(filepath.Dir(file), "..", "..")
	if !filepath.IsAbs(file) {
		wd, err := os.Getwd()
		if err != nil {
			return "", err
		}
		root = wd
	}
	_, err := os.Stat(filepath.Join(root, "cmd", "kernsweep-agent", "main.go"))
	return root, err
}

// sourceHash names the state of the agent's source and its toolchain.
func sourceHash(root string) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, runtime.Version())
	for _, dir := range []string{"cmd/kernsweep-agent", "workloads/agent", "workloads/wire"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
				return err
			}
			b, err := os.ReadFile(p)
			fmt.Fprintf(h, "%s %d\n%s", filepath.Base(p), len(b), b)
			return err
		})
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}
