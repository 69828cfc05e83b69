package proxydhcp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// link is a packet socket of one interface (packet(7)).
type link struct {
	*os.File
	boot net.PacketConn // nil: somebody else listens there
}

func (l *link) Close() error {
	err := l.File.Close()
	if l.boot != nil {
		_ = l.boot.Close() // nothing was read from it; it may be closed already
	}
	return err
}

// listen gives the frames of an interface that hold UDP packets for a DHCP or a
// boot server, and takes frames to send.
func listen(index int) (io.ReadWriteCloser, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		if errors.Is(err, unix.EPERM) {
			exe, e := os.Executable()
			if e != nil {
				exe = "kernsweep"
			}
			err = fmt.Errorf("this user may not send Ethernet frames: run `sudo setcap cap_net_bind_service,cap_net_raw=+ep %s`: %w", exe, err)
		}
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "packet socket")
	// The filter comes first: a socket without a protocol receives nothing.
	if err := filter(fd); err != nil {
		f.Close()
		return nil, err
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: networkOrder(unix.ETH_P_IP), Ifindex: index}); err != nil {
		f.Close()
		return nil, err
	}
	return &link{File: f, boot: occupy()}, nil
}

// networkOrder is v as the kernel wants it, most significant byte first.
func networkOrder(v uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v))
}

// filter keeps out all but whole UDP packets to the two ports.
func filter(fd int) error {
	raw, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: etherLen + 9, Size: 1}, // protocol
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: protoUDP, SkipTrue: 7},
		bpf.LoadAbsolute{Off: etherLen + 6, Size: 2}, // fragment
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: 0x3fff, SkipTrue: 5},
		bpf.LoadMemShift{Off: etherLen}, // length of the IP header
		bpf.LoadIndirect{Off: etherLen + 2, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: portServer, SkipTrue: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: portBoot, SkipTrue: 1},
		bpf.RetConstant{Val: 4096},
		bpf.RetConstant{Val: 0},
	})
	if err != nil {
		return err
	}
	code := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		code[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]})
}

// occupy binds the boot server's port, so that the kernel does not tell firmware
// that asks there that nobody listens. What comes is read from the frames.
func occupy() net.PacketConn {
	c := net.ListenConfig{Control: func(_, _ string, rc syscall.RawConn) error {
		var err error
		if e := rc.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) }); e != nil {
			return e
		}
		return err
	}}
	conn, err := c.ListenPacket(context.Background(), "udp4", fmt.Sprintf(":%d", portBoot))
	if err != nil {
		return nil // then somebody listens, which is as good
	}
	return conn
}
