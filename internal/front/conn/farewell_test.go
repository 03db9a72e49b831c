package conn

import (
	"bytes"
	"testing"

	"golang.org/x/net/http2"
)

// TestFarewellFollowsFrames checks that the end is found however the frames are cut, and not before the last frame is
// complete: later writes are dropped.
func TestFarewellFollowsFrames(t *testing.T) {
	t.Parallel()
	frames := func(write func(*http2.Framer)) []byte {
		var b bytes.Buffer
		write(http2.NewFramer(&b, nil))
		return b.Bytes()
	}
	request := func(stream uint32) func(*http2.Framer) {
		return func(f *http2.Framer) {
			_ = f.WriteHeaders(http2.HeadersFrameParam{
				StreamID: stream, BlockFragment: []byte("x"), EndStream: true, EndHeaders: true,
			})
		}
	}
	both := func(steps ...func(*http2.Framer)) func(*http2.Framer) {
		return func(f *http2.Framer) {
			for _, step := range steps {
				step(f)
			}
		}
	}
	data := func(stream uint32, end bool) func(*http2.Framer) {
		return func(f *http2.Framer) { _ = f.WriteData(stream, end, make([]byte, 50)) }
	}
	reset := func(stream uint32) func(*http2.Framer) {
		return func(f *http2.Framer) { _ = f.WriteRSTStream(stream, http2.ErrCodeCancel) }
	}
	goAway := func(last uint32) func(*http2.Framer) {
		return func(f *http2.Framer) { _ = f.WriteGoAway(last, http2.ErrCodeNo, []byte("debug")) }
	}
	settings := func(f *http2.Framer) { _ = f.WriteSettings() }
	type direction struct {
		in    bool
		write func(*http2.Framer)
		wants bool // complete after it
		spare int  // number of bytes at its end that the client does not need
	}
	for name, script := range map[string][]direction{
		"idle": {{write: both(settings, goAway(0)), wants: true}},
		"answered": {{in: true, write: both(settings, request(1))},
			{write: both(settings, data(1, false), data(1, true))}, {write: goAway(1), wants: true}},
		"answer after": {{in: true, write: request(1)}, {write: goAway(1)}, {write: data(1, false)},
			{write: both(data(1, true), settings), wants: true, spare: 9}},
		"two streams": {{in: true, write: both(request(1), request(3))},
			{write: both(goAway(3), data(3, true))}, {write: data(1, true), wants: true}},
		"reset by the client": {{in: true, write: request(1)}, {write: goAway(1)}, {in: true, write: reset(1)},
			{write: settings}, {write: reset(1), wants: true}},
		"reset before": {{in: true, write: both(request(1), reset(1))}, {write: goAway(1), wants: true}},
		"too late": {{in: true, write: both(request(1), request(3))}, {write: data(1, true)},
			{write: goAway(1), wants: true}},
		"after the farewell": {{write: goAway(0), wants: true}, {in: true, write: request(1)}, {write: settings},
			{write: reset(1), wants: true}},
		"trailers of the request": {{in: true, write: both(request(1), data(1, false))}, {write: data(1, true)},
			{in: true, write: request(1)}, {write: goAway(1), wants: true}},
	} {
		for _, piece := range []int{1, 7, 9, 13, 1 << 20} {
			f := newFarewell()
			f.read([]byte(http2.ClientPreface))
			for i, step := range script {
				complete := false
				for b := frames(step.write); len(b) > 0; {
					n := min(piece, len(b))
					if step.in {
						f.read(b[:n])
					} else if f.written(b[:n]) {
						complete = true
						if missing := len(b) - n - step.spare; missing > 0 {
							t.Errorf("%s, in pieces of %d: step %d: %d bytes too early", name, piece, i, missing)
						}
					}
					b = b[n:]
				}
				if complete != step.wants {
					t.Errorf("%s, in pieces of %d: step %d: complete %v", name, piece, i, complete)
				}
			}
		}
	}
}
