package agent

import "runtime"

// Numbers of system calls that package syscall lacks on some architectures.

func nrGetcpu() uintptr {
	switch runtime.GOARCH {
	case "amd64":
		return 309
	case "386":
		return 318
	case "arm":
		return 345
	case "mips", "mipsle":
		return 4312
	case "mips64", "mips64le":
		return 5271
	default: // the generic table: arm64, riscv64
		return 168
	}
}

func nrClockNanosleep() uintptr {
	switch runtime.GOARCH {
	case "amd64":
		return 230
	case "386":
		return 267
	case "arm":
		return 265
	case "mips", "mipsle":
		return 4265
	case "mips64", "mips64le":
		return 5225
	default:
		return 115
	}
}
