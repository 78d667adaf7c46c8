/** A row of: create table orders (id integer primary key, item text not null) */
export interface Order {
  id: number
  item: string
}
