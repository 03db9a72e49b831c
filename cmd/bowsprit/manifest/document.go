package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	kjson "sigs.k8s.io/json"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/files"
)

// Document is an object of a file.
type Document struct {
	File string
	// Object is decoded JSON, with int64 for whole numbers.
	Object map[string]any

	node   *yaml.Node // nil if the lines are unknown
	first  int        // the number of the first line of node's text
	prefix string     // the path of the object in its document: "items[2]." in a list
}

// Problem returns a problem with a field of the object.
func (d *Document) Problem(path, text string) *Problem {
	return &Problem{d.File, d.Line(path), d.prefix + path, text}
}

// Line returns the number of the line with a field, or with its nearest existing parent.
func (d *Document) Line(path string) int {
	if d.node == nil {
		return d.first
	}
	line, at := d.node.Line, d.node
	for _, step := range steps(path) {
		key, next := child(at, step)
		if next == nil {
			break
		}
		line, at = key.Line, next
	}
	return d.first + line - 1
}

// child returns the key and the value of a field, or an item twice, or nil.
func child(node *yaml.Node, step string) (key, value *yaml.Node) {
	if node == nil {
		return nil, nil
	}
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == step {
				return node.Content[i], node.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(node.Content) {
			return node.Content[i], node.Content[i]
		}
	}
	return nil, nil
}

var step = regexp.MustCompile(`\[([^\]]*)\]|[^.\[]+`)

// steps returns the keys and indexes of a path, as field.Path writes it.
func steps(path string) (all []string) {
	for _, m := range step.FindAllStringSubmatch(path, -1) {
		if strings.HasPrefix(m[0], "[") {
			all = append(all, m[1])
		} else {
			all = append(all, m[0])
		}
	}
	return all
}

// Read adds the objects of a stream of at most files.MaxSize bytes. It splits lists.
func (s *Set) Read(file string, in io.Reader) {
	text, err := io.ReadAll(files.Limit(in))
	if err != nil {
		s.fail(file, err)
		return
	}
	for _, part := range split(text) {
		if !s.readJSON(file, part) {
			s.readYAML(file, part)
		}
	}
}

// part is the text of one document of a stream.
type part struct {
	text  []byte
	first int // the number of its first line
}

// split divides a stream at its lines "---" and "...".
func split(text []byte) (parts []part) {
	now, line := part{first: 1}, 0
	for chunk := range bytes.Lines(text) {
		line++
		rest, begins := bytes.CutPrefix(chunk, []byte("---"))
		ends := string(bytes.TrimSpace(chunk)) == "..." && chunk[0] == '.'
		if begins && len(rest) > 0 && !bytes.ContainsAny(rest[:1], " \t\r\n") {
			begins = false
		}
		if begins || ends {
			parts = append(parts, now)
			now = part{first: line}
			chunk = []byte("\n")
			if begins {
				chunk = append([]byte("   "), rest...) // a document may begin on this line
			}
		}
		now.text = append(now.text, chunk...)
	}
	return append(parts, now)
}

// readJSON reads a sequence of JSON objects. It reports whether the text is one.
func (s *Set) readJSON(file string, p part) bool {
	if !bytes.HasPrefix(bytes.TrimSpace(p.text), []byte("{")) {
		return false
	}
	var found []Document
	decoder := json.NewDecoder(bytes.NewReader(p.text))
	for {
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			s.add(found...)
			return true
		}
		if err != nil {
			return false
		}
		end := int(decoder.InputOffset())
		d := Document{File: file, first: p.first + bytes.Count(p.text[:end-len(raw)], []byte("\n"))}
		if kjson.UnmarshalCaseSensitivePreserveInts(raw, &d.Object) != nil {
			return false
		}
		d.node = parse(raw)
		found = append(found, d)
	}
}

// parse returns the root of a document, or nil.
func parse(text []byte) *yaml.Node {
	var node yaml.Node
	if yaml.Unmarshal(text, &node) != nil || len(node.Content) == 0 {
		return nil
	}
	return node.Content[0]
}

// yamlError matches the errors of the YAML libraries.
var yamlError = regexp.MustCompile(`yaml: (?:unmarshal errors:\s*)?(?:line (\d+): )?(?s:(.*))$`)

func (s *Set) readYAML(file string, p part) {
	data, err := sigsyaml.YAMLToJSON(p.text)
	if err != nil {
		problem := &Problem{File: file, Line: p.first, Text: err.Error()}
		if m := yamlError.FindStringSubmatch(err.Error()); m != nil {
			problem.Text = m[2]
			if line, err := strconv.Atoi(m[1]); err == nil {
				problem.Line = p.first + line - 1
			}
		}
		problem.Text = "this is not YAML: " + strings.Join(strings.Fields(problem.Text), " ")
		s.Problems = append(s.Problems, problem)
		return
	}
	if string(data) == "null" {
		return
	}
	d := Document{File: file, first: p.first, node: parse(p.text)}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &d.Object); err != nil {
		s.Problems = append(s.Problems, &Problem{File: file, Line: d.Line(""),
			Text: "this is not an object: an object begins with apiVersion and kind"})
		return
	}
	s.add(d)
}

// add adds documents, and the items of lists.
func (s *Set) add(all ...Document) {
	for _, d := range all {
		kind, _ := d.Object["kind"].(string)
		items, isList := d.Object["items"].([]any)
		switch {
		case len(d.Object) == 0:
		case !isList || !strings.HasSuffix(kind, "List"):
			s.Documents = append(s.Documents, d)
		default:
			for i, item := range items {
				s.addItem(&d, i, item)
			}
		}
	}
}

func (s *Set) addItem(list *Document, i int, item any) {
	path := fmt.Sprintf("items[%d]", i)
	object, ok := item.(map[string]any)
	if !ok {
		s.Problems = append(s.Problems, list.Problem(path, "this is not an object"))
		return
	}
	one := Document{File: list.File, Object: object, first: list.first, prefix: path + "."}
	if list.node != nil {
		_, one.node = child(list.node, "items")
		_, one.node = child(one.node, strconv.Itoa(i))
	} else {
		one.first = list.Line(path)
	}
	s.Documents = append(s.Documents, one)
}

// CheckKind returns a problem if the object lacks the fields by which a server finds its kind, or nil.
func (d *Document) CheckKind() error {
	if err := d.checkText("apiVersion", d.Object["apiVersion"]); err != nil {
		return err
	}
	return d.checkText("kind", d.Object["kind"])
}

// CheckName is CheckKind for an object that also needs a name.
func (d *Document) CheckName() error {
	if err := d.CheckKind(); err != nil {
		return err
	}
	metadata, _ := d.Object["metadata"].(map[string]any)
	return d.checkText("metadata.name", metadata["name"])
}

func (d *Document) checkText(path string, value any) error {
	switch text, isText := value.(string); {
	case value == nil:
		return d.Problem(path, "is missing")
	case !isText:
		return d.Problem(path, "is not a text")
	case text == "":
		return d.Problem(path, "is empty")
	}
	return nil
}
