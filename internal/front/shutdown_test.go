package front

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/request/handover"
)

// TestShutdownTakesNoTime checks that Shutdown without running requests does not wait: neither a second for clients to
// read the farewell, nor five seconds for connections without a request. Watches end.
func TestShutdownTakesNoTime(t *testing.T) {
	t.Parallel()
	protocols(t, func(t *testing.T, protocol int) {
		synctest.Test(t, func(t *testing.T) {
			s := runPiped(t, func(w http.ResponseWriter, r *http.Request, info *request.Info, _ user.Info) {
				if info.Verb == "watch" {
					_, _ = io.WriteString(w, "event\n")
					_ = http.NewResponseController(w).Flush()
					<-r.Context().Done()
				}
			}, nil)
			idle, err := s.client(t, protocol).Get("https://localhost/api/v1/pods")
			must(t, err)
			_ = idle.Body.Close()
			if protocol == 2 {
				watch, err := s.client(t, protocol).Get("https://localhost/api/v1/pods?watch=1")
				must(t, err)
				defer watch.Body.Close()
				_, err = bufio.NewReader(watch.Body).ReadString('\n')
				must(t, err)
			}
			spare, err := s.pipes.dial(t.Context(), "", "") // no request, not even a handshake
			must(t, err)
			defer spare.Close()
			synctest.Wait()

			began := time.Now()
			must(t, s.Shutdown(t.Context()))
			must(t, <-s.served)
			if took := time.Since(began); took > 100*time.Millisecond { // by the test's own clock
				t.Errorf("Shutdown took %s", took)
			}
		})
	})
}

// TestShutdownAfterARequest checks that a request in progress gets its whole response, however long both take, and that
// Shutdown does not wait afterwards.
func TestShutdownAfterARequest(t *testing.T) {
	t.Parallel()
	http2Servers(t, func(t *testing.T) {
		leave := make(chan struct{})
		whole := bytes.Repeat([]byte("answer "), 100<<10)
		s := runPiped(t, func(w http.ResponseWriter, _ *http.Request, _ *request.Info, _ user.Info) {
			<-leave
			_, _ = w.Write(whole)
		}, nil)
		c := s.client(t, 2)
		answers := make(chan []byte, 1)
		go func() {
			resp, err := c.Get("https://localhost/api/v1/pods")
			if err != nil {
				answers <- []byte(err.Error())
				return
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			answers <- body
		}()
		synctest.Wait()
		stopped := make(chan error, 1)
		go func() { stopped <- s.Shutdown(t.Context()) }()
		time.Sleep(10 * time.Second) // by the test's own clock
		if n := len(stopped); n > 0 {
			t.Errorf("Shutdown did not wait: %v", <-stopped)
		}
		began := time.Now()
		close(leave)
		if got := <-answers; !bytes.Equal(got, whole) {
			t.Errorf("the answer is not whole: %d bytes, %.80q", len(got), got)
		}
		must(t, <-stopped)
		must(t, <-s.served)
		if took := time.Since(began); took > 600*time.Millisecond { // net/http polls twice a second
			t.Errorf("Shutdown took %s after the last request", took)
		}
	})
}

// endless is a response that was handed over, and lasts as long as its request.
type endless struct {
	ctx  context.Context
	over chan struct{}
}

func (e *endless) Turn(time.Time) (time.Time, bool) { return time.Time{}, e.ctx.Err() != nil }
func (e *endless) Over()                            { close(e.over) }

// TestShutdownOfHandedOver checks that responses that were handed over end with the server, whole and at once.
func TestShutdownOfHandedOver(t *testing.T) {
	t.Parallel()
	t.Run(directHTTP2, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			over := make(chan struct{})
			s := runPiped(t, func(w http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) {
				_, _ = io.WriteString(w, "event\n")
				stream := handover.To(w, &endless{r.Context(), over})
				if stream == nil {
					t.Error("the response was not handed over")
					return
				}
				context.AfterFunc(r.Context(), stream.Wake)
			}, nil)
			watch, err := s.client(t, 2).Get("https://localhost/api/v1/pods?watch=1")
			must(t, err)
			defer watch.Body.Close()
			body := bufio.NewReader(watch.Body)
			_, err = body.ReadString('\n')
			must(t, err)
			synctest.Wait()

			began := time.Now()
			must(t, s.Shutdown(t.Context()))
			must(t, <-s.served)
			if took := time.Since(began); took > 100*time.Millisecond { // by the test's own clock
				t.Errorf("Shutdown took %s", took)
			}
			<-over
			if _, err := body.ReadByte(); err != io.EOF {
				t.Errorf("the response ended with %v", err)
			}
		})
	})
}
