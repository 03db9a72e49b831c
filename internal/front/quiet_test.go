package front

import (
	"errors"
	"io"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// TestQuietClients checks when a connection without requests ends: after 60 seconds if the client answers no PING,
// after 90 to 105 seconds with GOAWAY if it does.
func TestQuietClients(t *testing.T) {
	t.Parallel()
	for name, answers := range map[string]bool{"lost": false, "idle": true} {
		t.Run(name, func(t *testing.T) {
			http2Servers(t, func(t *testing.T) {
				s := runPiped(t, text("hello"), nil)
				defer s.stop(t)
				c := s.dialAs(t, "h2")
				defer c.Close()
				_, err := io.WriteString(c, http2.ClientPreface)
				must(t, err)
				f := http2.NewFramer(c, c)
				must(t, f.WriteSettings())
				began, pings, farewell := time.Now(), 0, false
				for {
					frame, err := f.ReadFrame()
					if err != nil {
						if answers && !errors.Is(err, io.EOF) {
							t.Errorf("the connection ended with %v", err)
						}
						break
					}
					switch frame := frame.(type) {
					case *http2.PingFrame:
						pings++
						if answers {
							must(t, f.WritePing(true, frame.Data))
						}
					case *http2.GoAwayFrame:
						farewell = true
					}
				}
				took := time.Since(began) // by the test's own clock
				least, most := 60*time.Second, 61*time.Second
				if answers {
					least, most = 90*time.Second, 106*time.Second
				}
				if took < least || took > most || pings == 0 || answers && !farewell {
					t.Errorf("ended after %s and %d PINGs, GOAWAY %t", took, pings, farewell)
				}
			})
		})
	}
}
