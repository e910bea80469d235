package wire

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// Sources of a field: the key of its tag.
const (
	Body   = "json"   // a member of the body or of the view
	Path   = "path"   // a part of the path
	Query  = "query"  // a parameter of the query
	Header = "header" // a header, in place of a member that is absent from the body
)

// Field is a field of a struct, by its tags.
//
//	json:"name"            also ,omitempty; ,string for a token
//	wire:"set"             a time that is never zero
//	query:"name"           also default:"100" min:"1" max:"1000" for numbers
//	path:"name"            also none:"-" for the text that stands for ""
//	json:"name" header:"H" the header H where the body has no member of that name
//	whole:"yes"            the field is the whole body
type Field struct {
	Name   string
	Source string
	Index  []int
	Tag    reflect.StructTag
	Type   reflect.Type

	omit, text bool
	Set        bool // a time that is never zero
}

// Whole reports whether the field is the whole body.
func (f *Field) Whole() bool { return f.Tag.Get("whole") != "" }

// Optional reports whether a view may lack the field.
func (f *Field) Optional() bool { return f.omit }

// Token reports whether the field is a number that JSON has as a string.
func (f *Field) Token() bool { return f.text }

// Number is the number in a tag of the field; 0 without one.
func (f *Field) Number(tag string) int {
	n, _ := strconv.Atoi(f.Tag.Get(tag))
	return n
}

// CheckNumbers refuses numbers of a query outside of their bounds in an input, a pointer. The limit
// of a list in pages is 0 for all, and has no bound: the tags are about one page.
func CheckNumbers(in any, paged bool) error {
	v := reflect.ValueOf(in).Elem()
	for _, f := range Fields(v.Type()) {
		n, is := v.FieldByIndex(f.Index).Interface().(int)
		switch least, most := f.Number("min"), f.Number("max"); {
		case !is || f.Source != Query:
		case paged && n < 0:
			return fmt.Errorf("%s is %d; use 0 for all", f.Name, n)
		case !paged && (n < least || n > most):
			return fmt.Errorf("%s is %d; it must be a number from %d to %d", f.Name, n, least, most)
		}
	}
	return nil
}

var known sync.Map // reflect.Type -> []Field

// Fields returns the tagged fields of a struct, those of embedded structs in their place.
func Fields(t reflect.Type) []Field {
	if list, ok := known.Load(t); ok {
		return list.([]Field)
	}
	var list []Field
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous && f.Tag == "" && f.Type.Kind() == reflect.Struct {
			for _, inner := range Fields(f.Type) {
				inner.Index = append([]int{i}, inner.Index...)
				list = append(list, inner)
			}
			continue
		}
		if field := fieldOf(f); field.Source != "" && f.IsExported() {
			field.Index = []int{i}
			list = append(list, field)
		}
	}
	known.Store(t, list)
	return list
}

func fieldOf(f reflect.StructField) Field {
	of := Field{Tag: f.Tag, Type: f.Type}
	if of.Whole() {
		of.Name, of.Source = f.Name, Body
		return of
	}
	for _, source := range []string{Body, Path, Query} {
		name, options, _ := strings.Cut(f.Tag.Get(source), ",")
		if name == "" || name == "-" {
			continue
		}
		of.Name, of.Source = name, source
		of.omit, of.text, of.Set = strings.Contains(options, "omitempty"), strings.Contains(options, "string"), f.Tag.Get("wire") == "set"
		break
	}
	return of
}
