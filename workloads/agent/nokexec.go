//go:build !amd64 && !arm64 && !riscv64

package agent

// kexec is left out where kernels have no kexec_file_load, or kexec-tools are at hand.
func kexec([]string) int {
	return die(failure("kexec: no kexec_file_load on this architecture"))
}
