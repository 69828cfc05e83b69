package timefmt

import (
	"math"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	for _, c := range []struct {
		name, text              string
		elapsed, user, sys, res float64
		failed                  string
	}{
		{"bash", "\nreal\t2m3.407s\nuser\t1m58.020s\nsys\t0m4.913s\n", 123.407, 118.02, 4.913, 0.001, ""},
		{"bash with a decimal comma", "\nreal\t2m3,407s\nuser\t1m58,020s\nsys\t0m4,913s\n", 123.407, 118.02, 4.913, 0.001, ""},
		{"busybox", "real\t2m 3.40s\nuser\t1m 58.02s\nsys\t0m 4.91s\n", 123.4, 118.02, 4.91, 0.01, ""},
		{"POSIX", "real 123.40\nuser 118.02\nsys 4.91\n", 123.4, 118.02, 4.91, 0.01, ""},
		{"POSIX with a decimal comma", "real 123,40\nuser 118,02\nsys 4,91\n", 123.4, 118.02, 4.91, 0.01, ""},
		{"GNU, failed", "Command exited with non-zero status 2\n118.02user 4.91system 2:03.40elapsed 99%CPU (0avgtext+0avgdata 30112maxresident)k\n0inputs+8outputs (0major+7421minor)pagefaults 0swaps\n",
			123.4, 118.02, 4.91, 0.01, "the command exited with status 2"},
		{"GNU, over an hour", "28660.33user 31.07system 2:03:17elapsed 388%CPU (0avgtext)k\n", 7397, 28660.33, 31.07, 1, ""},
		{"GNU, killed", "Command terminated by signal 9\n0.00user 0.00system 0:00.20elapsed 86%CPU\n", 0.2, 0, 0, 0.01, "the command was killed by signal 9"},
		{"GNU -v, long", "\tCommand being timed: \"make -j4\"\n\tUser time (seconds): 28660.33\n\tSystem time (seconds): 31.07\n\tPercent of CPU this job got: 388%\n" +
			"\tElapsed (wall clock) time (h:mm:ss or m:ss): 2:03:17\n\tMaximum resident set size (kbytes): 412004\n\tExit status: 0\n", 7397, 28660.33, 31.07, 1, ""},
		{"GNU -v, short, failed", "\tUser time (seconds): 13900.10\n\tSystem time (seconds): 31.07\n\tElapsed (wall clock) time (h:mm:ss or m:ss): 59:59.99\n\tExit status: 3\n",
			3599.99, 13900.1, 31.07, 0.01, "the command exited with status 3"},
		{"zsh", "make -j4  118.02s user 4.91s system 99% cpu 2:03.40 total\n", 123.4, 118.02, 4.91, 0.01, ""},
		{"zsh, hours", "make  28660.33s user 31.07s system 388% cpu 2:03:17.50 total\n", 7397.5, 28660.33, 31.07, 0.01, ""},
		{"zsh, short", "sleep 1  0.00s user 0.00s system 0% cpu 1.003 total\n", 1.003, 0, 0, 0.01, ""},
		{"tcsh", "118.020u 4.913s 2:03.40 99.6%\t0+0k 0+8io 0pf+0w\n", 123.4, 118.02, 4.913, 0.01, ""},
		{"csh, hours", "28660.3u 31.0s 2:03:17 388%\t0+0k 0+8io 0pf+0w\n", 7397, 28660.3, 31, 1, ""},
		{"BSD", "      123.40 real       118.02 user         4.91 sys\n", 123.4, 118.02, 4.91, 0.01, ""},
		{"BSD -h", "\t2m3.40s real\t\t1m58.02s user\t\t4.91s sys\n", 123.4, 118.02, 4.91, 0.01, ""},
		{"mksh", "    2m3.40s real     1m58.02s user     0m4.91s system\n", 123.4, 118.02, 4.91, 0.01, ""},
		{"on one line", "real 2m3.407s  user 1m58.020s  sys 0m4.913s\n", 123.407, 118.02, 4.913, 0.001, ""},
		{"after other output, the last counts", "real 9.00\nuser of the day: root\nreal 1.50\nuser 0.50\nsys 0.25\n", 1.5, 0.5, 0.25, 0.01, ""},
	} {
		got, err := Read(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		near := func(a, b float64) bool { return a == b } // as if read from the decimal
		if !near(got.Elapsed, c.elapsed) || !near(got.User, c.user) || !near(got.System, c.sys) || !near(got.Resolution, c.res) || got.Failed() != c.failed {
			t.Errorf("%s: %+v %q", c.name, got, got.Failed())
		}
	}
}

func TestRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"real 1,234\nuser 1,100\nsys 0,050\n":                     `ambiguous: the comma may be a decimal or a thousands separator in "real 1,234"`,
		"make 1.0s user 1.0s system 99% cpu 1,234 total":          "ambiguous",
		"real 1.50\nuser 0.50\n":                                  "no sys time in",
		"":                                                        "no real time in",
		"real 1.2.3\nuser 1\nsys 1":                               `"1.2.3" is no time in "real 1.2.3"`,
		"real 1,234,567\nuser 1\nsys 1":                           "is no time",
		"real 2m75.0s\nuser 0m1.0s\nsys 0m1.0s":                   "more than 59",
		"0m0.000000s 0m0.000000s\n0m0.000000s 0m0.000000s\n":      "no real time", // the shell's `times` has no elapsed time
		"1.00user 1.00system 1:75:00elapsed 99%CPU\n":             "more than 59",
		"real 99999999999999999999999999999\nuser 0m1.0\nsys 1.0": "is no time",
	} {
		got, err := Read(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v; want %q", text, got, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("real\t2m3,407s\nuser\t1m58,020s\nsys\t0m4,913s\n")
	f.Add("make  118.02s user 4.91s system 99% cpu 2:03.40 total")
	f.Add("118.020u 4.913s 2:03.40 99.6%")
	f.Add("123.40 real 118.02 user 4.91 sys")
	f.Add("118.02user 4.91system 2:03.40elapsed 99%CPU")
	f.Add("Elapsed (wall clock) time (h:mm:ss or m:ss): 59:59.99")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Read(text)
		if err == nil && (got.Elapsed < 0 || math.IsNaN(got.Elapsed) || got.Resolution <= 0) {
			t.Errorf("%q gave %+v", text, got)
		}
	})
}
