package charge

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
)

const mib = 1 << 20

func named(name string, groups ...string) user.Info {
	return &user.DefaultInfo{Name: name, Groups: groups}
}

// TestAccounts plays stories about a ledger of 800 MiB: who takes and gives back how many MiB, and whether there is
// room.
func TestAccounts(t *testing.T) {
	t.Parallel()
	people := map[string]user.Info{
		"alice": named("alice"), "bob": named("bob"), "carol": named("carol"),
		"admin":     named("root", user.SystemPrivilegedGroup),
		"scheduler": named("system:kube-scheduler"), "node": named("system:node:n1", user.NodesGroup),
		"controller": named("system:serviceaccount:kube-system:job-controller"),
		"workload":   named("system:serviceaccount:default:job"), "anonymous": named(user.Anonymous),
	}
	type step struct {
		name string
		mib  int64 // less than zero gives back everything
		room bool
	}
	for name, steps := range map[string][]step{
		"one user gets half of what is not reserved":   {{"alice", 350, true}, {"alice", 1, false}},
		"the next user gets half of the rest":          {{"alice", 350, true}, {"bob", 175, true}, {"bob", 1, false}},
		"the largest holder is refused first":          {{"alice", 300, true}, {"alice", 120, false}, {"bob", 120, true}},
		"what is given back is there again":            {{"alice", 350, true}, {"alice", -1, true}, {"bob", 350, true}},
		"the reserve is kept from users":               {{"admin", 700, true}, {"carol", 1, false}},
		"the reserve is for administrators":            {{"admin", 700, true}, {"admin", 100, true}, {"admin", 1, false}},
		"the reserve is for nodes":                     {{"admin", 700, true}, {"node", 100, true}},
		"the reserve is for components":                {{"admin", 700, true}, {"scheduler", 60, true}, {"controller", 40, true}},
		"the reserve is not for workloads":             {{"admin", 700, true}, {"workload", 1, false}},
		"the reserve is not for anonymous users":       {{"admin", 700, true}, {"anonymous", 1, false}},
		"administrators are not held to half of it":    {{"admin", 800, true}, {"admin", 1, false}},
		"ordinary objects need no room":                {{"admin", 700, true}, {"carol", 0, true}},
		"a refused request leaves the room as it was ": {{"alice", 500, false}, {"alice", 350, true}},
	} {
		t.Run(name, func(t *testing.T) {
			l, open := New(800*mib), map[string][]*Account{}
			for _, s := range steps {
				if s.mib < 0 {
					for _, a := range open[s.name] {
						a.Close()
					}
					continue
				}
				a := begin(l, people[s.name])
				open[s.name] = append(open[s.name], a)
				err := a.Hold(s.mib*mib + free*(1-min(s.mib, 1)))
				if (err == nil) != s.room {
					t.Fatalf("%s takes %d MiB: %v", s.name, s.mib, err)
				}
				if err != nil && !apierrors.IsTooManyRequests(err) {
					t.Errorf("refused with %v, not with a 429", err)
				}
				if seconds, ok := apierrors.SuggestsClientDelay(err); err != nil && (!ok || seconds != retryAfter) {
					t.Errorf("the refusal says to try again after %d s", seconds)
				}
			}
		})
	}
}

func begin(l *Ledger, u user.Info) *Account {
	a := &Account{}
	a.Open(l, u)
	return a
}

// TestAccountOfGoroutines charges one account in many goroutines, as the conversion of a list does.
func TestAccountOfGoroutines(t *testing.T) {
	t.Parallel()
	l := New(0)
	a := begin(l, named("alice"))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if err := a.Hold(free); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if l.held != 400*free {
		t.Errorf("%d bytes are held, want %d", l.held, 400*free)
	}
	a.Close()
}

// TestBody looks at the limits of a document.
func TestBody(t *testing.T) {
	t.Parallel()
	l := New(0)
	a := begin(l, named("alice"))
	if err := a.Body(free/perByte, free); err != nil || a.held != 0 {
		t.Errorf("an ordinary body: %v, %d bytes are held", err, a.held)
	}
	err := a.Body(mib, perByte*mib+most+1)
	if !apierrors.IsRequestEntityTooLargeError(err) || !strings.Contains(err.Error(), "send fewer elements") {
		t.Errorf("a body of too many elements: %v", err)
	}
	if err := a.Body(mib, perByte*mib+most); err != nil {
		t.Errorf("the largest body: %v", err)
	}
	if l.held != perByte*mib+most+free {
		t.Errorf("%d bytes are held", l.held)
	}
	a.Close()
	a.Close()
	if l.held != 0 || len(l.byUser) != 0 {
		t.Errorf("after the end %d bytes are held, by %v", l.held, l.byUser)
	}
	select {
	case <-l.ended:
	default:
		t.Error("no memory is returned to the system")
	}
	var none Account
	if err := none.Body(mib, 1<<40); err != nil {
		t.Errorf("an account without a ledger: %v", err)
	}
	none.Close()
}

// TestLedgerAddsUp has random requests come and go, and adds up their accounts after each step.
func TestLedgerAddsUp(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(35, 4))
	l := New(Least)
	users := []user.Info{named("a"), named("b"), named("c"), named("root", user.SystemPrivilegedGroup)}
	var open []*Account
	for range 20_000 {
		if len(open) > 0 && random.IntN(2) == 0 {
			i := random.IntN(len(open))
			open[i].Close()
			open = append(open[:i], open[i+1:]...)
		} else {
			a := begin(l, users[random.IntN(len(users))])
			open = append(open, a)
			for range 1 + random.IntN(3) {
				size := random.IntN(3 * mib)
				_ = a.Body(size, perByte*int64(size)+random.Int64N(100*mib))
			}
		}
		var total int64
		by := map[string]int64{}
		for _, a := range open {
			total += a.held
			by[a.user.GetName()] += a.held
		}
		if total != l.held || total > l.bound {
			t.Fatalf("the ledger has %d bytes of %d, the accounts %d", l.held, l.bound, total)
		}
		for name, n := range by {
			if n != l.byUser[name] {
				t.Fatalf("the ledger has %d bytes of %s, the accounts %d", l.byUser[name], name, n)
			}
			if name != "root" && n > (l.bound-l.bound/reservePart)/2 {
				t.Fatalf("%s holds %d bytes of %d", name, n, l.bound)
			}
		}
	}
}

// TestDefault reads limits as systems show them.
func TestDefault(t *testing.T) {
	t.Parallel()
	const (
		meminfo    = "/proc/meminfo"
		group      = "/sys/fs/cgroup/memory.max"
		olderGroup = "/sys/fs/cgroup/memory/memory.limit_in_bytes"
	)
	for name, c := range map[string]struct {
		limit int64
		files map[string]string
		want  int64
	}{
		"nothing is known":           {math.MaxInt64, nil, mostDefault},
		"the runtime has a limit":    {2048 * mib, nil, 512 * mib},
		"the machine has memory":     {math.MaxInt64, map[string]string{meminfo: "MemTotal:  2097152 kB\n"}, 512 * mib},
		"the control group is less":  {4096 * mib, map[string]string{group: "2147483648\n"}, 512 * mib},
		"the control group has none": {2048 * mib, map[string]string{group: "max\n"}, 512 * mib},
		"an older control group":     {math.MaxInt64, map[string]string{olderGroup: "2147483648"}, 512 * mib},
		"there is little":            {128 * mib, nil, Least},
	} {
		got := Default(c.limit, func(file string) ([]byte, error) {
			if text, ok := c.files[file]; ok {
				return []byte(text), nil
			}
			return nil, os.ErrNotExist
		})
		if got != c.want {
			t.Errorf("%s: %d MiB, want %d", name, got/mib, c.want/mib)
		}
	}
}

// TestReply compares replies of webhooks with their requests.
func TestReply(t *testing.T) {
	t.Parallel()
	list := func(n int) []byte { return []byte(`[` + strings.Repeat(`{},`, n) + `{}]`) }
	for _, c := range []struct {
		sent, reply int // elements
		fits        bool
	}{
		{1, 1, true},
		{1, 30_000, true},
		{1, 40_000, false},
		{20_000, 100_000, true},
		{20_000, 1_000_000, false},
	} {
		if err := Reply(list(c.sent), list(c.reply)); (err == nil) != c.fits {
			t.Errorf("%d elements for %d: %v", c.reply, c.sent, err)
		}
	}
}

// TestRun checks when memory goes back to the system: after a large request, after several smaller ones, and not sooner
// than the pause and the share of the time allow.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(0)
		var releases, takes atomic.Int64 // takes is how long a release takes
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = l.run(ctx, func() { releases.Add(1); time.Sleep(time.Duration(takes.Load())) }) }()
		defer synctest.Wait()
		defer cancel()
		end := func(weight int64) {
			var a Account
			a.Open(l, named("a"))
			if err := a.Hold(weight); err != nil {
				t.Fatal(err)
			}
			a.Close()
			synctest.Wait()
		}
		for i, step := range []struct {
			weight int64
			after  time.Duration
			want   int64
		}{
			{free, 0, 0}, {returned - 1, 0, 0}, {free + 1, 0, 1}, {giveBack, 0, 1}, {free, pause - 1, 1}, {free, 1, 2},
		} {
			time.Sleep(step.after)
			if end(step.weight); releases.Load() != step.want {
				t.Errorf("step %d: %d returns, want %d", i, releases.Load(), step.want)
			}
		}
		time.Sleep(time.Hour)
		const long = 10 * time.Second
		takes.Store(int64(long))
		end(giveBack)
		end(giveBack)
		time.Sleep(share * long)
		synctest.Wait()
		if n := releases.Load(); n != 3 {
			t.Errorf("%d returns, want 3: the long one bounds the next", n)
		}
		time.Sleep(share * long)
		synctest.Wait()
		if n := releases.Load(); n != 4 {
			t.Errorf("%d returns, want 4", n)
		}
	})
}
