package results

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// faultyNode passes everything through but locks, and writes while fault is set.
type faultyNode struct {
	*fs.LoopbackNode
	fault *atomic.Int32 // the error of every change; 0: none
}

// errno is the error of changes. EPERM means only that there are no hard links.
func (n *faultyNode) errno() syscall.Errno {
	if e := syscall.Errno(n.fault.Load()); e != syscall.EPERM {
		return e
	}
	return 0
}

func (n *faultyNode) WrapChild(_ context.Context, child fs.InodeEmbedder) fs.InodeEmbedder {
	return &faultyNode{child.(*fs.LoopbackNode), n.fault}
}

func (n *faultyNode) Setlk(context.Context, fs.FileHandle, uint64, *fuse.FileLock, uint32) syscall.Errno {
	return syscall.ENOLCK
}

func (n *faultyNode) Setlkw(context.Context, fs.FileHandle, uint64, *fuse.FileLock, uint32) syscall.Errno {
	return syscall.ENOLCK
}

func (n *faultyNode) Write(ctx context.Context, f fs.FileHandle, data []byte, off int64) (uint32, syscall.Errno) {
	if e := n.errno(); e != 0 {
		return 0, e
	}
	return f.(fs.FileWriter).Write(ctx, data, off)
}

func (n *faultyNode) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	if e := n.errno(); e == syscall.EROFS || e == syscall.EIO {
		return nil, nil, 0, e
	}
	inode, f, open, e := n.LoopbackNode.Create(ctx, name, flags, mode, out)
	return inode, through(f), open, e
}

func (n *faultyNode) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	f, open, e := n.LoopbackNode.Open(ctx, flags)
	return through(f), open, e
}

// served is a file whose data goes through the server: a newer kernel would
// write past it.
type served struct{ file }

type file interface {
	fs.FileReader
	fs.FileWriter
	fs.FileFsyncer
	fs.FileFlusher
	fs.FileReleaser
	fs.FileGetattrer
	fs.FileSetattrer
}

func through(f fs.FileHandle) fs.FileHandle {
	if f, ok := f.(file); ok {
		return &served{f}
	}
	return f
}

func (n *faultyNode) Setattr(ctx context.Context, f fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if e := n.errno(); e == syscall.EROFS {
		return e
	}
	return n.LoopbackNode.Setattr(ctx, f, in, out)
}

func (n *faultyNode) Unlink(ctx context.Context, name string) syscall.Errno {
	if e := n.errno(); e == syscall.EROFS {
		return e
	}
	return n.LoopbackNode.Unlink(ctx, name)
}

func (n *faultyNode) Link(ctx context.Context, target fs.InodeEmbedder, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	if e := syscall.Errno(n.fault.Load()); e == syscall.EROFS || e == syscall.EPERM {
		return nil, e
	}
	return n.LoopbackNode.Link(ctx, target, name, out)
}

// childFuse serves FUSE_STORE at FUSE_DIR. Each line of its input is the error
// number with which changes fail from now on.
func childFuse() error {
	var fault atomic.Int32
	var st syscall.Stat_t
	if err := syscall.Stat(os.Getenv("FUSE_STORE"), &st); err != nil {
		return err
	}
	root := &fs.LoopbackRoot{Path: os.Getenv("FUSE_STORE"), Dev: uint64(st.Dev)}
	node := &faultyNode{&fs.LoopbackNode{RootData: root}, &fault}
	root.RootNode = node
	server, err := fs.Mount(os.Getenv("FUSE_DIR"), node, &fs.Options{
		MountOptions: fuse.MountOptions{EnableLocks: true, DirectMount: true, FsName: "faulty"}})
	if err != nil {
		return err
	}
	fmt.Println("mounted")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		n, err := strconv.Atoi(in.Text())
		if err != nil {
			return err
		}
		fault.Store(int32(n))
		fmt.Println("done")
	}
	if err := syscall.Unmount(os.Getenv("FUSE_DIR"), syscall.MNT_DETACH); err != nil {
		return err
	}
	server.Wait()
	return nil
}

// childRace waits for a word, then tries to become the writer and says how it
// went; it holds the run until its input ends.
func childRace(dir string) error {
	in := bufio.NewScanner(os.Stdin)
	fmt.Println("ready")
	in.Scan()
	w, err := openWriter(context.Background(), dir, childOpening())
	if err != nil {
		fmt.Println(err)
		return nil
	}
	fmt.Println("won")
	in.Scan()
	return w.Close()
}
