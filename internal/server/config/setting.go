package config

// Command is one of the commands of the program bowsprit that start a server.
type Command string

// The commands. They share most settings, under the names that kube-apiserver gives them.
const (
	Serve         Command = "serve"
	KubeAPIServer Command = "kube-apiserver"
)

// Setting declares one setting of a Config for a flag. All commands share the declaration.
type Setting struct {
	// Name is the name of the flag, without dashes: kube-apiserver's, where it has such a flag.
	Name string
	// Help describes the setting in a sentence.
	Help string
	// Value points to the setting: *string, *bool, **bool (nil means true), *int, *uint, *int64, *float32,
	// *time.Duration, *[]string, *map[string]string, or it is a map[string]any of feature gates. The map's values are
	// *bool for gates that are off by default, **bool for gates that are on by default, or a func(bool) that receives
	// the value.
	Value any
	// Default is the value of an unset setting, of the type that Value points to; nil means its zero.
	Default any
	// Form is the conversion of text to the value, where the type does not determine it.
	Form Form
	// Only is the one command with the setting, or "" for all.
	Only Command
	// Group is the title of a group of settings in the help, such as "Storage".
	Group string
}

// Form is how the text of a flag becomes the value of a setting.
type Form int

// The forms.
const (
	// Plain is the form of the type; commas divide a list.
	Plain Form = iota
	// Repeated is a list with one element for each use of the flag.
	Repeated
	// Seconds is a duration in a number of seconds.
	Seconds
	// Quoted is a map with commas between its elements. Elements in quotes may contain commas, as in a line of CSV.
	Quoted
	// Bounded is a number or a duration. 0 means no bound, which is a negative value in the field.
	Bounded
	// Explicit is a text or a number that is zero in the field if unset. An explicit empty text or 0 becomes "" in
	// quotes or -1 in the field, which Validate refuses where it has an effect.
	Explicit
	// Ports are ports from one to another: 30000-32767.
	Ports
)
