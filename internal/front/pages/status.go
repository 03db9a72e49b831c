package pages

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StatusPath is where Status is served.
const StatusPath = "/statusz"

// Status is the content of /statusz.
type Status struct {
	Started time.Time
	// Binary is the version of this process, Emulation the version of its API ("1.36"), Go the version of the language.
	Binary, Emulation, Go string
	// Paths lists other debug pages, sorted.
	Paths []string
	Now   func() time.Time
}

// statusz is Status as clients read it, of either version.
type statusz struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        name        `json:"metadata"`
	StartTime       metav1.Time `json:"startTime"`
	UptimeSeconds   int64       `json:"uptimeSeconds"`
	GoVersion       string      `json:"goVersion"`
	Binary          string      `json:"binaryVersion"`
	Emulation       string      `json:"emulationVersion,omitempty"`
	Paths           []string    `json:"paths"`
}

type name struct {
	Name string `json:"name"`
}

// Serve responds with the status.
func (s Status) Serve(w http.ResponseWriter, r *http.Request) {
	page{"Statusz", s.text, s.object}.serve(w, r)
}

func (s Status) uptime() int64 { return max(0, int64(s.Now().Sub(s.Started).Seconds())) }

func (s Status) object(apiVersion string) any {
	return statusz{
		TypeMeta: metav1.TypeMeta{Kind: "Statusz", APIVersion: apiVersion}, Metadata: name{component},
		StartTime: metav1.NewTime(s.Started), UptimeSeconds: s.uptime(),
		GoVersion: s.Go, Binary: s.Binary, Emulation: s.Emulation, Paths: s.Paths,
	}
}

func (s Status) text() string {
	up := s.uptime()
	return fmt.Sprintf(
		"\nStarted: %s\nUp: %d hr %02d min %02d sec\nGo version: %s\nBinary version: %s\nEmulation version: %s\nPaths: %s\n",
		s.Started.UTC().Format(time.UnixDate), up/3600, up/60%60, up%60, s.Go, s.Binary, s.Emulation,
		strings.Join(s.Paths, " "))
}
