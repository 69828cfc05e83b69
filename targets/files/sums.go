package files

import (
	"bufio"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
)

// sumKind is a program of a target that sums up a file, and what it would print.
type sumKind struct {
	program string
	of      func(path string) (string, error)
}

// sumKinds are the programs in the order of preference.
func sumKinds() [3]sumKind {
	return [3]sumKind{
		{"sha256sum", func(path string) (string, error) { return hashOf(path, sha256.New()) }},
		{"md5sum", func(path string) (string, error) { return hashOf(path, md5.New()) }}, // against accidents, not against people
		{"cksum", cksum},
	}
}

func hashOf(path string, h hash.Hash) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// cksum is the CRC of POSIX, and the size: "4294967295 0".
func cksum(path string) (string, error) {
	const poly = 0x04c11db7
	var table [256]uint32
	for i := range table {
		c := uint32(i) << 24
		for range 8 {
			if c&0x80000000 != 0 {
				c = c<<1 ^ poly
			} else {
				c <<= 1
			}
		}
		table[i] = c
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 64<<10)
	var crc uint32
	var n uint64
	for {
		b, err := in.ReadByte()
		if err == io.EOF {
			break
		}
		if err != nil {
			return "", err
		}
		crc = crc<<8 ^ table[byte(crc>>24)^b]
		n++
	}
	for k := n; k != 0; k >>= 8 {
		crc = crc<<8 ^ table[byte(crc>>24)^byte(k)]
	}
	return fmt.Sprintf("%d %d", ^crc, n), nil
}
