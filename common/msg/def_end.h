/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The end of def_struct.h and def_table.h: the words of a .def mean nothing
 * again.
 */
#undef STRUCT
#undef STR
#undef CSTR
#undef RAW
#undef SECRET
#undef TEXT
#undef BYTES
#undef SBYTES
#undef INT
#undef INT64
#undef UINT
#undef BOOL
#undef OPTINT
#undef TIME
#undef STRS
#undef INTS
#undef MAP
#undef OBJ
#undef PTR
#undef LIST
#undef PLAIN
#undef PART
#undef PART_END
#undef END
#undef ROW
#undef OMIT
#undef HIDDEN
#undef FOREIGN
#undef PROSE
#undef LAX
#undef DEF_FILE
