//go:build unix

package external

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/testing/counter"
	"github.com/bowsprit/bowsprit/internal/testing/etcdtest"
	"github.com/bowsprit/bowsprit/internal/testing/freeport"
)

// memberVariable has a process of this test be a member of etcd: its name, directory, URLs and cluster, by spaces.
const memberVariable = "BOWSPRIT_TEST_MEMBER"

func TestMain(m *testing.M) {
	if text := os.Getenv(memberVariable); text != "" {
		if err := beMember(strings.Fields(text)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// beMember serves until the test, which has the other end of stdin, ends.
func beMember(of []string) error {
	client, err := url.Parse(of[2])
	if err != nil {
		return err
	}
	peer, err := url.Parse(of[3])
	if err != nil {
		return err
	}
	c := embed.NewConfig()
	c.Name, c.Dir, c.InitialCluster, c.LogLevel, c.UnsafeNoFsync = of[0], of[1], of[4], "fatal", true
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	e, err := embed.StartEtcd(c)
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	select {
	case <-e.Server.ReadyNotify():
		fmt.Println("ready")
	case err := <-e.Err():
		return err
	}
	return <-e.Err()
}

// startMembers starts three processes and returns them with their client URLs.
func startMembers(t *testing.T) (all []*os.Process, urls []string) {
	t.Helper()
	var peers, initial []string
	for i := range 3 {
		urls = append(urls, "http://"+freeport.Address(t))
		peers = append(peers, "http://"+freeport.Address(t))
		initial = append(initial, fmt.Sprintf("m%d=%s", i, peers[i]))
	}
	var ready []*bufio.Scanner
	for i := range 3 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), memberVariable+"="+strings.Join([]string{
			fmt.Sprint("m", i), filepath.Join(t.TempDir(), "etcd"), urls[i], peers[i], strings.Join(initial, ","),
		}, " "))
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = in.Close()
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		all, ready = append(all, cmd.Process), append(ready, bufio.NewScanner(out))
	}
	for i, r := range ready {
		if !r.Scan() {
			t.Fatalf("member %d did not start", i)
		}
	}
	return all, urls
}

// TestStoppedMember stops each of three members in turn, the leader among them, while writers create, update and
// delete. A member goes on only once every writer has written on without it. At the end the history has each
// acknowledged write once, at the revision of its answer, and no refused one.
func TestStoppedMember(t *testing.T) {
	processes, urls := startMembers(t)
	ctx := etcdtest.Context(t)
	s, err := store.Open(ctx, store.Config{Etcd: Config{Endpoints: urls}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	first, err := s.Create(ctx, "k/first", []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}

	const writers, each = 4, 10
	var done [writers]counter.Counter
	working, end := context.WithCancel(ctx) // until a writer ends
	defer end()
	var mu sync.Mutex
	acknowledged, refused := map[string]int64{}, map[string]bool{} // revisions by value
	over := make(chan struct{})
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			defer end()
			rev := int64(0)
			for n := 0; ; n++ {
				select {
				case <-over:
					return
				default:
				}
				key, value := fmt.Sprint("k/", i%2), fmt.Sprint(i, ".", n) // two writers for a key
				var at int64
				var err error
				switch {
				case rev == 0:
					at, err = s.Create(ctx, key, []byte(value))
				case n%5 == 4:
					value = ""
					at, err = s.Delete(ctx, key, rev)
				default:
					at, err = s.Update(ctx, key, []byte(value), rev)
				}
				switch {
				case err == nil:
					done[i].Add()
					mu.Lock()
					if value != "" {
						acknowledged[value] = at
					}
					mu.Unlock()
				case errors.Is(err, store.ErrExists), errors.Is(err, store.ErrConflict),
					errors.Is(err, store.ErrNotFound):
					done[i].Add()
					mu.Lock()
					refused[value] = true
					mu.Unlock()
				default:
					t.Errorf("writer %d: %v", i, err)
					return
				}
				rev = 0
				if entry, err := s.Get(ctx, key); err == nil {
					rev = entry.Revision
				} else if !errors.Is(err, store.ErrNotFound) {
					t.Errorf("writer %d reads: %v", i, err)
					return
				}
			}
		})
	}
	// written waits until every writer has written so often more.
	written := func(desc string) bool {
		for i := range writers {
			if err := done[i].WaitMore(working, each); err != nil {
				t.Errorf("%s: writer %d does not continue: %v", desc, i, err)
				return false
			}
		}
		return true
	}
	for round := range 2 {
		for i, p := range processes {
			desc := fmt.Sprintf("round %d, member %d is stopped", round, i)
			if !written("before: " + desc) {
				break
			}
			if err := p.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			went := written(desc)
			if err := p.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			if !went {
				break
			}
		}
	}
	written("at the end")
	close(over)
	all.Wait()
	if t.Failed() {
		return
	}

	last, err := s.Create(ctx, "k/last", []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	history := map[string][]int64{}
	watch := s.Watch(ctx, first)
	for seen := int64(0); seen < last; {
		batch, ok := <-watch
		if !ok || batch.Err != nil {
			t.Fatal(batch.Err)
		}
		for _, e := range batch.Events {
			history[string(e.Value)] = append(history[string(e.Value)], e.Revision)
		}
		seen = batch.Revision
	}
	for value, at := range acknowledged {
		if got := history[value]; len(got) != 1 || got[0] != at {
			t.Errorf("write %s is acknowledged at %d and took place at %v", value, at, got)
		}
	}
	for value := range refused {
		if got := history[value]; value != "" && len(got) > 0 {
			t.Errorf("write %s is refused and took place at %v", value, got)
		}
	}
	t.Logf("%d writes took place, %d were refused", len(acknowledged), len(refused))
}
