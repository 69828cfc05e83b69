package boot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"

	"github.com/google/renameio/v2"

	"kernsweep/targets"
)

// Netload says where a boot loader fetches its files by TFTP. Methods that load
// over the network embed it.
type Netload struct {
	TFTP   string `hcl:"tftp,optional" doc:"address of the TFTP server as the boot loader sees it"`
	Listen string `hcl:"tftp_listen,optional" doc:"host:port where kernsweep's own TFTP server listens (default: port 69 of tftp)"`
	Root   string `hcl:"tftp_root,optional,path" doc:"folder that another TFTP server serves: files are copied there, and kernsweep serves nothing"`

	release func()
	served  *targets.Serving // nil: another server has the files
	kernel  string           // its published name
	sizes   fileSizes        // of what is published
}

// check refuses what cannot work with a boot loader.
func (n *Netload) check() error {
	if n.TFTP != "" && !isAddress(n.TFTP) {
		return fmt.Errorf("tftp = %q: want an IP address without a port: a boot loader knows no names, and asks port 69", n.TFTP)
	}
	return n.checkServer()
}

// checkServer refuses what cannot work with whatever resolves names.
func (n *Netload) checkServer() error {
	switch {
	case n.TFTP == "":
		return errors.New("tftp is missing: the address from which the boot loader fetches its files")
	case n.Root != "" && n.Listen != "":
		return errors.New("tftp_root and tftp_listen exclude each other: either another server serves the files, or kernsweep does")
	case n.Listen != "":
		if _, port, err := net.SplitHostPort(n.Listen); err != nil || !isPort(port) {
			return fmt.Errorf("tftp_listen = %q: want host:port, as %q", n.Listen, net.JoinHostPort(n.TFTP, "69"))
		}
	}
	return nil
}

func isAddress(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}

// fileSizes are those of published files, in bytes; 0 is none.
type fileSizes struct{ Kernel, Initrd, DTB int64 }

// netFiles are the names under which a loader finds a kernel; "" is none.
type netFiles struct{ Kernel, Initrd, DTB string }

// publish makes k's files readable by TFTP until the next publish or Close.
// Names are short, for some loaders keep few characters, and carry the content's
// hash, so that an old copy is never taken for the new file.
func (n *Netload) publish(ctx context.Context, t *targets.Target, k targets.Kernel) (netFiles, error) {
	err := n.Close()
	if err != nil {
		return netFiles{}, err
	}
	n.served, n.kernel, n.sizes = nil, "", fileSizes{}
	var names netFiles
	files := map[string]string{}
	drop := func() {}
	for _, f := range []struct {
		at         *string
		size       *int64
		path, kind string
	}{
		{&names.Kernel, &n.sizes.Kernel, k.Image.Kernel, "k"},
		{&names.Initrd, &n.sizes.Initrd, k.Image.Initrd, "i"},
		{&names.DTB, &n.sizes.DTB, k.Image.DTB, "d"},
	} {
		if f.path == "" {
			continue
		}
		path := f.path
		if f.kind == "i" {
			if path, drop, err = joinInitrd(k.Image); err != nil {
				return netFiles{}, err
			}
		}
		sum, err := hashFile(path)
		if err == nil {
			*f.size, err = sizeOf(path)
		}
		if err != nil {
			drop()
			return netFiles{}, err
		}
		*f.at = "ks-" + sum[:12] + "." + f.kind
		files[*f.at] = path
	}
	n.served, err = n.offer(ctx, t, files)
	if err != nil {
		drop()
		return netFiles{}, err
	}
	n.kernel = names.Kernel
	n.release = func() {
		if n.served != nil {
			n.served.Release()
		}
		drop()
	}
	return names, nil
}

// Notes tells what was fetched since the newest publish.
func (n *Netload) Notes() []string {
	if n.served == nil || n.kernel == "" {
		return nil
	}
	return n.served.Facts(n.kernel)
}

// offer serves the files, or copies them where another server does: then there
// is no Serving.
func (n *Netload) offer(ctx context.Context, t *targets.Target, files map[string]string) (*targets.Serving, error) {
	if n.Root != "" {
		for name, path := range files {
			if err := copyTo(filepath.Join(n.Root, name), path); err != nil {
				return nil, fmt.Errorf("tftp_root: %w", err)
			}
		}
		return nil, nil // they stay: another boot finds them there
	}
	if t.Serve == nil {
		return nil, errors.New("no TFTP server can be had here: set tftp_root")
	}
	listen := n.Listen
	if listen == "" {
		listen = net.JoinHostPort(n.TFTP, "69")
	}
	return t.Serve(ctx, listen, files)
}

// Close ends the serving of what was published. It may be called again.
func (n *Netload) Close() error {
	if n.release != nil {
		n.release()
		n.release = nil
	}
	return nil
}

// joinInitrd makes one file of an image's initrds, until drop. It is nowhere by
// name, so that it goes with this process, however that ends.
func joinInitrd(i targets.Image) (path string, drop func(), err error) {
	f, err := os.CreateTemp("", "kernsweep-initrd-")
	if err != nil {
		return "", func() {}, err
	}
	drop = func() { _ = f.Close() }
	if err := errors.Join(os.Remove(f.Name()), i.WriteInitrd(f)); err != nil {
		drop()
		return "", func() {}, err
	}
	return fmt.Sprintf("/proc/self/fd/%d", f.Fd()), drop, nil
}

func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// sizeOf is a file's size. An empty one is a build that went wrong.
func sizeOf(path string) (int64, error) {
	i, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	if i.Size() == 0 {
		return 0, fmt.Errorf("%s is empty", path)
	}
	return i.Size(), nil
}

// copyTo puts a whole file in place in one step, readable by a server of any user.
func copyTo(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if is, err := os.Stat(to); err == nil && is.Size() == info.Size() {
		return nil // its name is its content
	}
	out, err := renameio.NewPendingFile(to, renameio.WithPermissions(0o644))
	if err != nil {
		return err
	}
	defer out.Cleanup()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.CloseAtomicallyReplace()
}
