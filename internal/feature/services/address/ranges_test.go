package address

import (
	"net/netip"
	"testing"
)

func TestRange(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		network       string
		count, static uint64
		first, last   string
	}{
		{"10.0.0.0/24", 254, 16, "10.0.0.1", "10.0.0.254"},
		{"10.0.0.77/29", 6, 0, "10.0.0.73", "10.0.0.78"},
		{"10.0.0.0/28", 14, 0, "10.0.0.1", "10.0.0.14"},
		{"10.0.0.0/27", 30, 16, "10.0.0.1", "10.0.0.30"},
		{"10.96.0.0/12", 1<<20 - 2, 256, "10.96.0.1", "10.111.255.254"},
		{"10.0.0.0/31", 0, 0, "", ""},
		{"10.0.0.1/32", 0, 0, "", ""},
		{"fd00::/112", 1<<16 - 1, 256, "fd00::1", "fd00::ffff"},
		{"fd00::/64", 1<<64 - 1, 256, "fd00::1", "fd00::ffff:ffff:ffff:ffff"},
		{"fd00::/128", 0, 0, "", ""},
	} {
		r := newRange(netip.MustParsePrefix(test.network))
		if r.count != test.count || r.static != test.static {
			t.Errorf("%s: %d addresses, %d of them for those who name one; want %d, %d", test.network, r.count,
				r.static, test.count, test.static)
		}
		if r.count == 0 {
			if r.holds(r.prefix.Addr()) {
				t.Errorf("%s: holds its own address", test.network)
			}
			continue
		}
		first, last := r.at(0), r.at(r.count-1)
		if first.String() != test.first || last.String() != test.last {
			t.Errorf("%s: from %s to %s, want %s to %s", test.network, first, last, test.first, test.last)
		}
		if !r.holds(first) || !r.holds(last) || r.holds(first.Prev()) || r.holds(last.Next()) {
			t.Errorf("%s: does not hold just what it has", test.network)
		}
	}
}

// TestPick checks that dynamic numbers come from the upper part while it has free ones, then from the lower part,
// without duplicates.
func TestPick(t *testing.T) {
	t.Parallel()
	const static, count = 16, 100
	used := map[uint64]bool{}
	for n := range uint64(count) {
		i, ok := pick(static, count, func(n uint64) uint64 { return n * 2 / 3 }, func(i uint64) bool { return used[i] })
		if !ok || used[i] || i >= count {
			t.Fatalf("number %d is %d, %v", n, i, ok)
		}
		if lower := i < static; lower != (n >= count-static) {
			t.Errorf("number %d is %d", n, i)
		}
		used[i] = true
	}
	if i, ok := pick(static, count, func(uint64) uint64 { return 0 }, func(i uint64) bool { return used[i] }); ok {
		t.Errorf("all are used, and there is %d", i)
	}
	// So many that their sum with where the search begins cannot be counted.
	i, ok := pick(256, 1<<64-1, func(n uint64) uint64 { return n - 1 }, func(i uint64) bool { return i == 1<<64-2 })
	if !ok || i != 256 {
		t.Errorf("after the last comes %d, %v, want the first", i, ok)
	}
}
