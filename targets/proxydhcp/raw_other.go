//go:build !linux

package proxydhcp

import (
	"errors"
	"io"
)

func listen(int) (io.ReadWriteCloser, error) {
	return nil, errors.New("it needs Linux's packet sockets: set proxy = false and let the network's DHCP server name the loader")
}
