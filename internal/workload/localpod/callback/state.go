package callback

// The pages of a client that is a pod.
const (
	// StatePath is the path of a stream of States, one JSON object a line, the first one at once.
	StatePath = "/state"
	// LogPath is the path of the program's output. The query has the options of a pod's log, with sinceTime in place of
	// sinceSeconds.
	LogPath = "/log"
)

// State is the state of a program.
type State struct {
	// Started is true after the startup probe, Ready while the readiness probe succeeds.
	Started bool `json:"started"`
	Ready   bool `json:"ready"`
}

// MaxState bounds a line with a State.
const MaxState = 1024

// The query parameters of the upgrade.
const (
	// ContainerParameter is the container that the program stands for.
	ContainerParameter = "container"
	// PortParameter is a port that the program listens at; there may be several.
	PortParameter = "port"
	// MaxPorts bounds their number.
	MaxPorts = 100
)

// The headers of the response.
const (
	// PodHeader is the name of the pod, UIDHeader its uid.
	PodHeader = "Bowsprit-Pod"
	UIDHeader = "Bowsprit-Pod-Uid"
)
